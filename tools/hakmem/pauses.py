"""A command whose sleeps last as long as its test wants: with paused_sleep.so preloaded."""
import contextlib
import os
import socket
import subprocess


class Pauses:
    def __init__(self, library):
        self._library = library
        self._own, self._command = socket.socketpair()

    def start(self, command, env=None, **how):
        """The process, to be called once."""
        environment = {**(os.environ if env is None else env), "LD_PRELOAD": self._library,
                       "HAK_TEST_PAUSES": str(self._command.fileno())}
        process = subprocess.Popen(command, env=environment, text=True, pass_fds=[self._command.fileno()], **how)
        self._command.close()
        return process

    def wait(self):
        """Until the command sleeps; False: it has ended without that."""
        return self._own.recv(1) == b"s"

    def go(self):
        # Which one that was interrupted did not wait for.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._own.send(b"g")

    def close(self):
        self._own.close()
