"""The `alebo` command. Nothing heavy is imported until a command needs it."""

from .app import main as main
