"""What a DAG task or a command does, one function a transaction: read a slice, call the library, write the slice.

DAG files and the command line both call these, so that a day comes out the same either way. Only this layer and the
commands touch the warehouse and the settings.
"""
