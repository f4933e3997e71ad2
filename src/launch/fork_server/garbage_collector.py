# SPDX-License-Identifier: Apache-2.0
"""What was there before a fork is left out of what the garbage collector goes through.

Going through an object writes to it, and what a process writes to it has a copy of: of a program with PyTorch that is all of its modules, each time, and
several times more when Python ends, which was half of the time of a short slice. Frozen, they are passed over. Who asks the collector for
everything (gc.collect(), to have memory back; gc.get_objects(), to find tensors) gets everything: they are thawed before.
"""
import gc

ASKS_FOR_ALL = ("collect", "get_objects", "get_referrers")
freeze, unfreeze = gc.freeze, gc.unfreeze


def watch_collector():
    """Before the program begins, which may keep these functions under names of its own."""
    for name in ASKS_FOR_ALL:
        setattr(gc, name, thawing(getattr(gc, name)))


def thawing(function):
    def asks(*arguments, **named):
        if not is_young(function, arguments, named):
            unfreeze()
        return function(*arguments, **named)

    asks.__name__ = asks.__qualname__ = function.__name__
    asks.__doc__ = function.__doc__
    return asks


def is_young(function, arguments, named):
    """Whether it is a generation that is asked for, which what is frozen is not in."""
    generation = named.get("generation", arguments[0] if arguments else None)
    return function.__name__ != "get_referrers" and generation in (0, 1)
