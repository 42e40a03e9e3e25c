# Install and export: find_package(libddp) and libddp.pc.
