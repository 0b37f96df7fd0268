"""The model servers that the shell names: what `make run` asks them while it starts, and says about them.

report.py           decides whether anything is asked; imports the others only then
check.py            asks each server for its models, all at once, and tries the likely right address of a wrong one
model_list.py       one request: bounded in time and size, and sent as the functions send theirs
advice.py           the lines and warnings of the welcome, and the default model
listed_models.py    the ids that the functions list, so that they can suggest the nearest one
"""
