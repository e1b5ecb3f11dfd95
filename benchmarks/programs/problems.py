"""Writes problems for an SMT solver: problems.py SIZE…, SIZE being full or small."""
import random
import sys


def factors(out, bits, product):
    """Two factors of a number, as bit vectors."""
    out.write("(set-logic QF_BV)\n")
    for name in "ab":
        out.write("(declare-const %s (_ BitVec %d))\n" % (name, bits))
        out.write("(assert (bvugt %s (_ bv1 %d)))\n" % (name, bits))
    out.write("(assert (= (bvmul ((_ zero_extend %d) a) ((_ zero_extend %d) b)) (_ bv%d %d)))\n"
              % (bits, bits, product, 2 * bits))
    out.write("(assert (bvule a b))\n(check-sat)\n")


def pigeons(out, holes):
    """One pigeon too many for the holes."""
    out.write("(set-logic QF_LIA)\n")
    for pigeon in range(holes + 1):
        out.write("(declare-const p%d Int)\n(assert (and (<= 1 p%d) (<= p%d %d)))\n"
                  % (pigeon, pigeon, pigeon, holes))
    out.write("(assert (distinct %s))\n(check-sat)\n"
              % " ".join("p%d" % pigeon for pigeon in range(holes + 1)))


def schedule(out, jobs, machines, source):
    """Jobs that must not overlap on their machines, within less and less time."""
    out.write("(set-logic QF_IDL)\n")
    steps = [[(machine, source.randint(1, 9)) for machine in source.sample(range(machines), machines)]
             for _ in range(jobs)]
    for job in range(jobs):
        for step in range(machines):
            out.write("(declare-const s%d_%d Int)\n(assert (>= s%d_%d 0))\n" % (job, step, job, step))
        for step in range(machines - 1):
            out.write("(assert (>= (- s%d_%d s%d_%d) %d))\n" % (job, step + 1, job, step, steps[job][step][1]))
    for machine in range(machines):
        uses = [(job, step, steps[job][step][1]) for job in range(jobs) for step in range(machines)
                if steps[job][step][0] == machine]
        for i, (job, step, time) in enumerate(uses):
            for other, other_step, other_time in uses[:i]:
                out.write("(assert (or (>= (- s%d_%d s%d_%d) %d) (>= (- s%d_%d s%d_%d) %d)))\n"
                          % (job, step, other, other_step, other_time, other, other_step, job, step, time))
    for bound in range(9 * machines, 3 * machines, -4):
        out.write("(push)\n")
        for job in range(jobs):
            out.write("(assert (<= s%d_%d %d))\n" % (job, machines - 1, bound))
        out.write("(check-sat)\n(pop)\n")


def terms(out, count, source):
    """Two large terms over bit vectors that are equal by the laws of arithmetic."""
    out.write("(set-logic QF_UFBV)\n(declare-fun f ((_ BitVec 32)) (_ BitVec 32))\n")
    names = ["v%d" % i for i in range(20)]
    for name in names:
        out.write("(declare-const %s (_ BitVec 32))\n" % name)
    for i in range(count):
        a, b, c = (source.choice(names) for _ in range(3))
        one = "(f (bvadd (bvand %s %s) (bvor %s %s) %s))" % (a, b, a, b, c)
        other = "(f (bvadd %s %s %s))" % (c, b, a)
        out.write("(push)\n(assert (not (= %s %s)))\n(check-sat)\n(pop)\n" % (one, other))


def main():
    for size in sys.argv[1:]:
        full = size == "full"
        source = random.Random(7)
        with open("%s-factors.smt2" % size, "w") as out:
            factors(out, 18 if full else 12, 201881 * 231571 if full else 3571 * 3581)
        with open("%s-pigeons.smt2" % size, "w") as out:
            pigeons(out, 6)
        with open("%s-schedule.smt2" % size, "w") as out:
            schedule(out, 9 if full else 5, 6 if full else 4, source)
        with open("%s-terms.smt2" % size, "w") as out:
            terms(out, 25 if full else 5, source)


if __name__ == "__main__":
    main()
