"""Can the answer be trusted?"""
