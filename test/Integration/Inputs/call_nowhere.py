"""call_nowhere.py KERNELS: prints a text of phase kernel whose first kernel calls a function that nobody defines."""

import sys

text = open(sys.argv[1], encoding="utf-8").read()
first = text.index("  func.func private")
body = text.index("{plan.kernel} {", first) + len("{plan.kernel} {")
print(text[:first] + "  func.func private @nowhere()\n" + text[first:body] + "\n    func.call @nowhere() : () -> ()" + text[body:])
