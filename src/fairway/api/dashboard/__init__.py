"""The dashboard's own endpoints: signing in and out, and the files of the web app at `/ui`.

Here: sessions of browsers over HTTP, the built files from memory, their headers.
Not here: the app itself (`web/`); what it shows, which any key may ask for (the packages beside).
"""
