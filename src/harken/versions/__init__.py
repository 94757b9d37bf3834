"""Versions on disk and on remote storage: how they are written, published, kept for their readers, and removed.

    atomic       replace a file or a folder so that it appears whole or not at all
    locks        file locks between processes and threads
    array_file   named arrays in one file, checked whenever it is opened
    folder       a local folder of such files, whose manifest names those of the present version
    files        the files below a root: local, by pyarrow, or by a back end that the caller passes
    root         versions below such a root, each a folder that never changes: publish, pin, remove
    leases       pins that belong to a reader in this process, and are released
    copies       local copies of remote folders, one per machine

`Folder` and `Root` are two protocols, and each version below a `Root` holds a `Folder`. A `Folder` is what an engine is
saved to: it is local, a new version reuses files of the one before, and a reader keeps old files alive by mapping them.
A `Root` may be remote, its versions are whole folders that can be copied, and a reader keeps one alive by a pin. They
share how a file is replaced, how a lock is held, and the order of publishing: first the new files, then the one file
that names them, then the removal of what is no longer needed.
"""
