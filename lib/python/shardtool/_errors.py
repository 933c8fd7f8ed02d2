"""Errors of shardtool: one class per exit status of the command line, all of them an Error."""

from typing import Tuple


class Error(Exception):
    """A failure. `str()` is the message that the command line prints, with facts and help.

    code     the command line's exit status: 2 usage, 3 mapping, 4 input, 5 output, 6 resource, 70 a bug, 130 interrupted
    id       of the kind of failure, "E0203"; `shardtool explain E0203` describes it
    message  one sentence
    hint     lines that say how to go on, joined; may be empty
    notes    facts, as (label, text)
    tensor   the name of the affected tensor, or ""
    file     the file or folder, or ""
    """

    code = 70
    id = ""
    message = ""
    hint = ""
    notes: Tuple[Tuple[str, str], ...] = ()
    tensor = ""
    file = ""


class UsageError(Error):
    code = 2


class MappingError(Error):
    code = 3


class InputError(Error):
    code = 4


class Inexpressible(InputError):
    """A layout that the asked form does not have, such as a stacked cut as a DTensor."""


class OutputError(Error):
    code = 5


class ResourceError(Error):
    code = 6


class InternalError(Error):
    code = 70


class Interrupted(Error):
    code = 130


_CLASSES = {c.code: c for c in (UsageError, MappingError, InputError, OutputError, ResourceError, InternalError, Interrupted)}


def of_fields(text, id, code, message, tensor, help, notes, file):
    """The error of these fields; the extension calls it."""
    error = _CLASSES[code](text)
    error.id, error.message, error.tensor, error.file = id, message, tensor, file
    error.hint, error.notes = "\n".join(help), tuple(notes)
    return error


def refusal(cls, reason, hint):
    """The error of this class that the package itself raises; it has no id."""
    error = cls(f"{reason}\n  help: {hint}")
    error.message, error.hint = reason, hint
    return error
