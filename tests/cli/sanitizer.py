"""AddressSanitizer says on stderr that SimGrid's context switches confuse it; tests read stderr without that."""
import os
import re

NOTICE = re.compile(r"==\d+==WARNING: ASan is ignoring requested __asan_handle_no_return[^\n]*\n"
                    r"False positive error reports may follow\n"
                    r"For details see https://github\.com/google/sanitizers/issues/189\n")


def without_notices(text):
    return NOTICE.sub("", text)


def options():
    """What a program under test needs of the environment to run sanitized."""
    return {k: os.environ[k] for k in ("ASAN_OPTIONS", "UBSAN_OPTIONS") if k in os.environ}
