"""What `qilin-tasks doctor` looks at before a GPU is started: each check gives findings, and no check raises."""
