"""Which sub-problem is solved?"""
