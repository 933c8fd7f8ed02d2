// MPI plugin: a thin layer over the MPI that it was compiled with. It lets no exception escape.

#include "lib/comm/mpi/mpi_plugin.h"

#include <mpi.h>

#include <cstdio>
#include <new>

struct shardtool_mpi_request {
  MPI_Request request = MPI_REQUEST_NULL;
};

namespace {

constexpr int kTag = 1;

MPI_Comm communicator = MPI_COMM_NULL;
MPI_Message probed = MPI_MESSAGE_NULL;

int explain(int code, const char* call, char* text, size_t room) {
  char message[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, message, &length);
  std::snprintf(text, room, "%s: %s", call, message);
  return code;
}

void name(char* text, size_t room) {
  char words[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(words, &length);
  std::snprintf(text, room, "%s", words);
}

int begin(int* rank, int* size, char* text, size_t room) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  int threads = 0;
  if (initialised != 0) {
    MPI_Query_thread(&threads);
  } else if (const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &threads)) {
    return explain(code, "MPI_Init_thread", text, room);
  }
  if (threads < MPI_THREAD_SERIALIZED) {
    std::snprintf(text, room, "this MPI was built for programs of one thread");
    return MPI_ERR_OTHER;
  }
  // A separate communicator keeps messages apart from other users of MPI in this process.
  if (const int code = MPI_Comm_dup(MPI_COMM_WORLD, &communicator)) {
    return explain(code, "MPI_Comm_dup", text, room);
  }
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator, rank);
  MPI_Comm_size(communicator, size);
  return MPI_SUCCESS;
}

shardtool_mpi_request* begun(int code, MPI_Request request) {
  if (code != MPI_SUCCESS) return nullptr;
  return new (std::nothrow) shardtool_mpi_request{request};
}

shardtool_mpi_request* send(int to, const void* bytes, int count) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Isend(bytes, count, MPI_BYTE, to, kTag, communicator, &request);
  return begun(code, request);
}

int probe(int from, int* count) {
  int found = 0;
  MPI_Status status;
  if (MPI_Improbe(from, kTag, communicator, &found, &probed, &status) != MPI_SUCCESS) {
    return -1;
  }
  if (found == 0) return 0;
  MPI_Get_count(&status, MPI_BYTE, count);
  return 1;
}

shardtool_mpi_request* receive(void* bytes, int count) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = MPI_Imrecv(bytes, count, MPI_BYTE, &probed, &request);
  return begun(code, request);
}

int test(shardtool_mpi_request* request) {
  int done = 0;
  if (MPI_Test(&request->request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return -1;
  if (done != 0) delete request;
  return done != 0 ? 1 : 0;
}

void finalize() {
  MPI_Comm_free(&communicator);
  MPI_Finalize();
}

void end_all(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
}

constexpr shardtool_mpi_functions kFunctions{
    SHARDTOOL_MPI_PLUGIN_VERSION, name, begin, send, probe, receive, test, finalize, end_all};

}  // namespace

extern "C" __attribute__((visibility("default"))) const shardtool_mpi_functions*
shardtool_mpi_plugin() {
  return &kFunctions;
}
