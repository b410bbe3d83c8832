"""Browse a corpus of scored comments: what the page asks for, as JSON, and the files of the page."""
