#!/usr/bin/env python3
"""Greets whoever writes. Text in, text out: baton serve --exec examples/exec/greet.py"""
import sys

name = sys.stdin.read().strip()
if not name:
    sys.exit("Who is there? Send a name.")  # goes to stderr; the task fails with it
print(f"Hello, {name}!")
