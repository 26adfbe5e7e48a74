"""An online judge: programs of strangers, compiled and run in a sandbox, judged by their output."""
