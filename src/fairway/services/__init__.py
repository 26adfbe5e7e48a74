"""The work: loops and use-cases that join the law and the memory; transactions open here."""
