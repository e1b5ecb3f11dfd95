#!/usr/bin/env python3
"""Writes the man pages and completions of the hakmem command from what it says.

usage: tools/command_pages.py COMMAND OUTPUT_DIRECTORY

COMMAND is the built hakmem; docs/options.md has the options. Written are
hakmem.1, libhakmem.7, hakmem.bash, _hakmem (zsh) and hakmem.fish.
"""
import datetime
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What a flag's value is, for completion; the others take any text.
VALUES = {"variant": ["release", "tracing", "hardened", "debug"], "by": ["live", "peak", "allocated"],
          "sort": ["resident", "live", "cached", "growth", "calls", "failures"]}
SWITCHES = ("by-class", "diff", "follow", "json", "keep-last", "no-fold", "once", "openmetrics", "pages")
# What a subcommand's argument is.
ARGUMENTS = {"run": "command", "explain": "file", "failures": "file", "heap": "file", "stats": "file",
             "top": "process", "trace": "file", "purge": "process", "option": "process", "watch": "process", "serve": "nothing"}
DESCRIPTION = "malloc whose failed allocations explain themselves"


class Subcommand:
    def __init__(self, name, summary, text):
        self.name = name
        self.summary = summary
        head, *flags = re.split(r"^  --([\w-]+)\n", text, flags=re.MULTILINE)
        usage, _, self.description = head.partition("\n\n")
        self.usage = usage.replace("usage: ", "").strip()
        self.flags = [(name, " ".join(words.split())) for name, words in zip(flags[::2], flags[1::2])]


def subcommands(ask):
    """What `ask(ARGUMENT...)`, the command's answers, tell of its subcommands."""
    lines = re.findall(r"^  (\w+) +(.*)$", ask("help"), re.MULTILINE)
    return [Subcommand(name, summary, ask("help", name)) for name, summary in lines if name != "help"]


def roff(text):
    """Text as it is, for troff."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", text, flags=re.MULTILINE)


def paragraph(text):
    """Indented lines stay lines."""
    return ".nf\n%s\n.fi" % roff(text) if text.startswith("    ") else roff(" ".join(text.split()))


def paragraphs(text):
    return "\n.PP\n".join(paragraph(part) for part in text.strip("\n").split("\n\n"))


def head(name, section, version, date):
    return ['.TH %s %d "%s" "hakmem %s"' % (name.upper(), section, date, version), ".SH NAME"]


def command_page(commands, version, date):
    out = head("hakmem", 1, version, date)
    out += ["hakmem \\- run programs on a " + roff(DESCRIPTION), ".SH SYNOPSIS"]
    out += ["\n.br\n".join(roff(command.usage) for command in commands)]
    out += [".SH DESCRIPTION"]
    for command in commands:
        out += [".SS " + roff("hakmem " + command.name), paragraphs(command.description)]
        for name, words in command.flags:
            out += [".TP", "\\fB\\-\\-%s\\fR" % roff(name), roff(words)]
    out += [".SH SEE ALSO", ".BR libhakmem (7)"]
    return "\n".join(out) + "\n"


def library_page(options, version, date):
    out = head("libhakmem", 7, version, date)
    out += ["libhakmem \\- a " + roff(DESCRIPTION), ".SH SYNOPSIS",
            ".B LD_PRELOAD=libhakmem.so.0", ".I program", ".br", ".B cc", ".I program.c", ".B \\-lhakmem", ".SH DESCRIPTION",
            roff("A program that is linked with libhakmem, or runs with it preloaded, has its malloc, free and the "
                 "C++ operators new and delete from it. A pointer that is no live block ends the process with a "
                 "sentence, and a call that returns NULL leaves an event with the reason. "
                 "hakmem/hakmem.h declares what a program may ask it."),
            ".SH ENVIRONMENT", roff("Read once, when the process makes its first allocation; ignored with raised privileges.")]
    for variable, value, default, meaning in re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \| (.*) \|$", options, re.MULTILINE):
        out += [".TP", "\\fB%s\\fR" % variable, roff("%s (%s; default: %s)" % (meaning, value, default))]
    out += [".SH SEE ALSO", ".BR hakmem (1),", ".BR malloc (3)"]
    return "\n".join(out) + "\n"


def bash_completion(commands):
    cases = []
    for command in commands:
        flags = " ".join("--" + name + ("" if name in SWITCHES else "=") for name, _ in command.flags)
        cases.append("    %s) flags='%s' ;;" % (command.name, flags))
    values = ["    --%s) COMPREPLY=($(compgen -W '%s' -- \"${current#=}\")); return ;;" % (flag, " ".join(words))
              for flag, words in VALUES.items()]
    return "\n".join([
        "# Completion of hakmem(1) for bash.",
        "_hakmem() {",
        "  local current=${COMP_WORDS[COMP_CWORD]} flag=${COMP_WORDS[COMP_CWORD - 1]} flags i",
        "  COMPREPLY=()",
        "  if ((COMP_CWORD == 1)); then",
        "    COMPREPLY=($(compgen -W '%s help --version' -- \"$current\"))" % " ".join(c.name for c in commands),
        "    return",
        "  fi",
        "  if [[ ${COMP_WORDS[1]} == run ]]; then",
        "    # What follows the program's name is the program's affair.",
        "    for ((i = 2; i < COMP_CWORD; ++i)); do",
        "      [[ ${COMP_WORDS[i]} != -- ]] || { ((++i)); break; }",
        "      [[ ${COMP_WORDS[i]} == [-=]* || ${COMP_WORDS[i - 1]} == = ]] || break",
        "    done",
        "    if ((i < COMP_CWORD)); then",
        "      ! declare -F _command_offset >/dev/null || _command_offset \"$i\"",
        "      return",
        "    fi",
        "  fi",
        "  [[ $flag == = ]] && flag=${COMP_WORDS[COMP_CWORD - 2]}",
        "  case $flag in",
        *values,
        "  esac",
        "  case ${COMP_WORDS[1]} in",
        *cases,
        "    help) COMPREPLY=($(compgen -W '%s' -- \"$current\")); return ;;" % " ".join(c.name for c in commands),
        "  esac",
        "  if [[ $current == -* ]]; then",
        "    COMPREPLY=($(compgen -W \"$flags\" -- \"$current\"))",
        "    [[ ${COMPREPLY-} != *= ]] || compopt -o nospace",
        "  elif [[ ${COMP_WORDS[1]} == run ]]; then",
        "    COMPREPLY=($(compgen -c -- \"$current\"))",
        "  else",
        "    COMPREPLY=($(compgen -f -- \"$current\"))",
        "  fi",
        "}",
        "complete -F _hakmem hakmem", ""])


def quoted(text):
    """For a single-quoted word of zsh and fish, within brackets of zsh."""
    return re.sub(r"[\[\]:'\\]", "", text)


def first_sentence(text):
    return quoted(text.split(". ")[0].rstrip("."))


def zsh_completion(commands):
    out = ["#compdef hakmem", "_hakmem() {", "  local -a subcommands=("]
    out += ["    '%s:%s'" % (c.name, quoted(c.summary)) for c in commands]
    out += ["  )", "  if ((CURRENT == 2)); then", "    _describe subcommand subcommands", "    return", "  fi",
            "  local subcommand=$words[2]", "  shift words", "  ((--CURRENT))", "  case $subcommand in"]
    for command in commands:
        out += ["    %s)" % command.name, "      _arguments \\"]
        for name, words in command.flags:
            action = "" if name in SWITCHES else "=:%s:%s" % (name, "(%s)" % " ".join(VALUES[name]) if name in VALUES else "_files")
            mark = "=" if action else ""
            out.append("        '--%s%s[%s]%s' \\" % (name, mark, first_sentence(words), action[1:]))
        out.append({"command": "        '*::program:_normal'", "process": "        '*:process:_pids'"}
                   .get(ARGUMENTS[command.name], "        '*:file:_files'"))
        out.append("      ;;")
    return "\n".join(out + ["  esac", "}", '_hakmem "$@"', ""])


def fish_completion(commands):
    out = ["# Completion of hakmem(1) for fish."]
    for command in commands:
        out.append("complete -c hakmem -n __fish_use_subcommand -f -a %s -d '%s'" % (command.name, quoted(command.summary)))
        for name, words in command.flags:
            value = "" if name in SWITCHES else " -r" + (" -f -a '%s'" % " ".join(VALUES[name]) if name in VALUES else "")
            out.append("complete -c hakmem -n '__fish_seen_subcommand_from %s' -l %s%s -d '%s'"
                       % (command.name, name, value, first_sentence(words)))
        if ARGUMENTS[command.name] == "command":
            out.append("complete -c hakmem -n '__fish_seen_subcommand_from %s' -f -a '(__fish_complete_subcommand)'" % command.name)
        if ARGUMENTS[command.name] == "process":
            out.append("complete -c hakmem -n '__fish_seen_subcommand_from %s' -f -a '(__fish_complete_pids)'" % command.name)
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("-"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    command = os.path.abspath(sys.argv[1])

    def ask(*arguments):
        return subprocess.run([command, *arguments], stdout=subprocess.PIPE, text=True, check=True).stdout
    version = re.search(r"\d+\.\d+\.\d+", ask("--version"))[0]
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "0")) or None
    moment = datetime.datetime.now(datetime.timezone.utc) if seconds is None else datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
    date = moment.strftime("%Y-%m-%d")
    commands = subcommands(ask)
    output = pathlib.Path(sys.argv[2])
    output.mkdir(parents=True, exist_ok=True)
    options = (ROOT / "docs/options.md").read_text(encoding="utf-8")
    for name, text in (("hakmem.1", command_page(commands, version, date)),
                       ("libhakmem.7", library_page(options, version, date)),
                       ("hakmem.bash", bash_completion(commands)),
                       ("_hakmem", zsh_completion(commands)),
                       ("hakmem.fish", fish_completion(commands))):
        (output / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
