PRELUDE = """\
import collections, datetime, decimal, fractions, functools, itertools, json, math, random, re, string
from math import *
from builtins import pow
from collections import Counter, defaultdict, deque
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from itertools import combinations, permutations, product
"""


def with_imports(code):
    """The program, with the imports that programs of models often forget."""
    return PRELUDE + code
