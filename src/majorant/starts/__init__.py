"""Where does a fit begin?"""
