// Keeps OpenMPI's plugins loaded until the process ends. OpenMPI closes them in
// MPI_Finalize; what they have leaked could then not be traced to them, and
// the leak sanitizer could not tell it from leaks of ours.
//
// Part of every test in address sanitizer builds: a function of the program
// stands in for the C library's.
extern "C" int dlclose(void*) noexcept { return 0; }
