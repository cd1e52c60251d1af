"""What an attack is: an enemy, what it wants, and a check that decides whether it got it."""

import dataclasses
import typing

ENEMIES = ("anonymous", "tenant", "viewer", "node", "local user", "token thief")


class Succeeded(Exception):
    """The enemy has what it wanted. The text is the evidence."""


class Skipped(Exception):
    """The attack cannot be run on this machine. The text says why."""


@dataclasses.dataclass
class Attack:
    """One attack. The function gets the world, and returns evidence that the attack failed."""

    wants: str  # the attack as a sentence
    enemy: str
    kind: str  # the class of attacks: the name of its module
    run: typing.Callable
    quick: bool  # part of the slice that ./test runs


ATTACKS = []


def attack(enemy, wants, quick=True):
    """Registers a function as an attack. `quick` ones take a second or less and wait for
    nothing but conditions."""
    assert enemy in ENEMIES, enemy

    def register(function):
        kind = function.__module__.rpartition(".")[2]
        ATTACKS.append(Attack(wants, enemy, kind, function, quick))
        return function

    return register


def defeat(condition, evidence):
    """Decides for the enemy where the condition holds."""
    if condition:
        raise Succeeded(str(evidence))
