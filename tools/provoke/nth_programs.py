"""The programs that fail_nth.py runs, each with work that prints the same every time."""
import fcntl
import re
import shutil
import socket
import subprocess

# Lines that programs print, or reply, when they get no memory.
SAYS_NO_MEMORY = re.compile(r"(?i)memory ?error|out of memory|no memory|oom|cannot allocate")
# At most so many calls map hakmem's own tables at the start.
TABLE_CALLS = 16

PYTHON_WORK = r"""
import zlib, json, sys
rounds = int(sys.argv[1])
def small(i):
    return len({"k%d" % j: [j] * (j % 7) for j in range(3000 * (i + 1))})
def texts(i):
    return zlib.crc32(json.dumps([str(j) * (j % 50) for j in range(2000 * (i + 1))]).encode())
def large(i):
    return sum(bytearray(3000000 * (i + 1))[::50000])
def huge(i):
    return len(bytes(300000000 + i))
for i in range(rounds):
    for step in (small, texts, large, huge):
        try:
            print(step.__name__, i, step(i))
        except MemoryError:
            print("MemoryError")
"""

SQL_WORK = """
create table t (a integer primary key, b text, c real);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
  insert into t select i, hex(zeroblob(i % 200)), i / 7.0 from n;
select count(*), sum(length(b)) from t;
create index t_b on t (b);
select b, count(*) from t group by b order by 2 desc, 1 limit 3;
select length(group_concat(b, ',')) from t;
select count(*) from t x join t y on x.b = y.b where x.a < 300;
delete from t where a % 2;
select count(*), sum(a) from t;
"""

REDIS_WORK = [
    "ping",
    "eval for\\ i=1,{rows}\\ do\\ redis.call('set','s'..i,string.rep('v',i%300))\\ end\\ return\\ redis.call('dbsize') 0",
    "setrange large 20000000 x",
    "eval for\\ i=1,{rows}\\ do\\ redis.call('zadd','z',i,'m'..i)\\ end\\ return\\ redis.call('zcard','z') 0",
    "strlen large",
    "del large",
    "dbsize",
]


class Program:
    name = ""
    commands = ()

    def installed(self):
        return all(shutil.which(command) for command in self.commands)

    def run(self, folder, environment, long):
        """Returns exit code, standard output and standard error."""
        result = subprocess.run(self.command(long), env=environment, cwd=folder, input=self.input(long),
                                capture_output=True, text=True, errors="replace", check=False)
        return result.returncode, result.stdout, result.stderr

    def command(self, long):
        raise NotImplementedError

    def input(self, long):
        del long
        return ""


class Python(Program):
    name = "python"
    commands = ("/usr/bin/python3",)

    def command(self, long):
        return ["/usr/bin/python3", "-S", "-c", PYTHON_WORK, "6" if long else "2"]


class Sqlite(Program):
    name = "sqlite3"
    commands = ("sqlite3",)

    def command(self, long):
        del long
        return ["sqlite3", ":memory:"]

    def input(self, long):
        return SQL_WORK.format(rows=60000 if long else 6000)


class Redis(Program):
    name = "redis"
    commands = ("redis-server",)

    def run(self, folder, environment, long):
        path = folder + "/socket"
        command = ["redis-server", "--port", "0", "--unixsocket", path, "--dir", folder, "--save", "",
                   "--daemonize", "no", "--crash-log-enabled", "no", "--logfile", ""]
        with subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, encoding="utf-8", errors="replace") as server:
            # Whatever it says while nobody reads has room.
            fcntl.fcntl(server.stdout, fcntl.F_SETPIPE_SZ, 1 << 20)
            log, output = [], ""
            # Until it is ready, or has ended.
            while line := server.stdout.readline():
                log.append(line)
                if "ready to accept connections" in line:
                    output = self.talk(path, long)
                    break
            log.append(server.stdout.read())
            return server.wait(), output, "".join(log)

    @staticmethod
    def talk(path, long):
        """The replies, a line each, as far as the server gets."""
        replies = []
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(path)
            except OSError:
                return ""
            stream = client.makefile("rb")
            for text in REDIS_WORK + ["shutdown nosave"]:
                words = [word.replace("\\ ", " ") for word in
                         re.split(r"(?<!\\) ", text.format(rows=60000 if long else 10000))]
                message = "*%d\r\n" % len(words) + "".join("$%d\r\n%s\r\n" % (len(word), word) for word in words)
                try:
                    client.sendall(message.encode())
                    reply = stream.readline()
                except OSError:
                    break
                if not reply:
                    break
                replies.append(reply.decode(errors="replace").strip())
        return "".join(reply + "\n" for reply in replies)


PROGRAMS = [Python(), Sqlite(), Redis()]
