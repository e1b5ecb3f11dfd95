"""Small objects in CPython: objects.py ROUNDS. Prints a line per round."""
import collections
import sys


class Node:
    def __init__(self, key):
        self.key = key
        self.left = None
        self.right = None


def insert(root, key):
    node = root
    while True:
        side = "left" if key < node.key else "right"
        child = getattr(node, side)
        if child is None:
            setattr(node, side, Node(key))
            return
        node = child


def depth(node):
    return 0 if node is None else 1 + max(depth(node.left), depth(node.right))


def numbers(seed):
    while True:
        seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
        yield seed >> 8


def trees(seed, count):
    source = numbers(seed)
    root = Node(next(source))
    for _ in range(count):
        insert(root, next(source))
    return depth(root)


def words(seed, count):
    source = numbers(seed)
    counts = collections.Counter("word-%x" % (next(source) % 5000) for _ in range(count))
    index = collections.defaultdict(list)
    for word, number in counts.items():
        index[number].append(word.upper() + word[::-1])
    return sum(len(";".join(sorted(entries))) for entries in index.values())


def queue(seed, count):
    source = numbers(seed)
    pending = collections.deque((next(source), [i], {"at": i}) for i in range(1000))
    total = 0
    for i in range(count):
        number, path, note = pending.popleft()
        total += number + len(path) + note["at"]
        pending.append((number ^ i, (path + [i])[-8:], {"at": i, "was": note["at"]}))
    return total


def big_numbers(seed, count):
    value = seed
    for i in range(count):
        value = value * 1000003 + i
        if value.bit_length() > 2000:
            value >>= 1900
    return value


def main():
    for seed in range(1, int(sys.argv[1]) + 1):
        print(seed, trees(seed, 15000), words(seed, 40000), queue(seed, 40000), big_numbers(seed, 40000))


if __name__ == "__main__":
    main()
