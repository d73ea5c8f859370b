"""What the operating system offers: open files, digests, zstd, leases, locks, who uses a file.

Promise: the platform's differences end here. In come paths and descriptors; out come bytes,
digests and answers such as "this process has it open for writing".
May import `fs` and the words that everybody uses.

Rule: nothing here knows what a session is.
"""
