// The tree keeps the house's rules, and the checker finds what breaks them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/floor_checker.h"
#include "base/str.h"
#include "base/test_folder.h"

namespace crema {
namespace {

namespace fs = std::filesystem;

TEST(Floors, TheTreeKeepsThem) {
  const std::vector<std::string> problems = check_floors(CREMA_SOURCE_DIR);
  EXPECT_TRUE(problems.empty()) << join(problems, "\n");
}

/// A tree of its own for each test.
class PlantedTree : public testing::Test {
 protected:
  void plant(const std::string& path, const std::string& text) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  /// The one file's problems, comment in front of text.
  std::vector<std::string> problems(const std::string& path, const std::string& text) {
    fs::remove_all(root_);
    plant(path, "// A file.\n" + text);
    return check_floors(root_.string());
  }
  void expect_clean(const std::string& path, const std::string& text) {
    EXPECT_TRUE(problems(path, text).empty()) << path << "\n" << text;
  }
  void expect_problem(const std::string& path, const std::string& text, const std::string& words) {
    const std::vector<std::string> found = problems(path, text);
    ASSERT_EQ(found.size(), 1u) << path << "\n" << text << join(found, "\n");
    EXPECT_NE(found[0].find(words), std::string::npos) << found[0];
    EXPECT_EQ(found[0].rfind(path + ":2: ", 0), 0u) << found[0];
  }

  TestFolder folder_;
  fs::path root_ = fs::path(folder_.path()) / "tree";
};

TEST_F(PlantedTree, AFloorAboveIsFound) {
  expect_problem("src/io/a.cpp", "#include \"layers/layer.h\"\n", "floor above io");
  expect_problem("src/base/a.h", "#include \"crema.pb.h\"\n", "floor above base");
  expect_problem("src/ops/cpu/a.cpp", "#include \"io/weights.h\"\n", "floor above ops");
  expect_problem("src/net/a.cpp", "# include <solver/solver.h>\n", "floor above net");
  expect_clean("src/solver/a.cpp", "#include \"net/net.h\"\n#include \"base/error.h\"\n");
  expect_clean("src/ops/a.h", "#include \"crema.pb.h\"\n#include <vector>\n");
  expect_clean("tools/a.cpp", "#include \"solver/solver.h\"\n");
}

TEST_F(PlantedTree, ALibraryOutsideItsFolderIsFound) {
  expect_problem("src/layers/a.cpp", "#include <dnnl.hpp>\n", "belongs to src/ops/cpu/");
  expect_problem("src/ops/cpu/a.cpp", "#include <cudnn.h>\n", "belongs to src/ops/cuda/");
  expect_problem("src/ops/a.cpp", "#include <cublasLt.h>\n", "belongs to src/ops/cuda/");
  expect_problem("src/net/a.cpp", "#include <cuda_runtime_api.h>\n", "src/parallel/");
  expect_problem("src/solver/a.cpp", "#include <nccl.h>\n", "src/parallel/");
  expect_problem("src/io/image.cpp", "#include <opencv2/core.hpp>\n", "belongs to src/io/image/");
  expect_problem("tools/a.cpp", "#include <opencv2/core.hpp>\n", "belongs to src/io/image/");
  expect_clean("src/ops/cpu/a.cpp", "#include <dnnl.hpp>\n");
  expect_clean("src/ops/cuda/a.cu", "#include <cudnn.h>\n#include <cuda_runtime.h>\n");
  expect_clean("src/io/image/a.cpp", "#include <opencv2/core.hpp>\n");
}

TEST_F(PlantedTree, ABackendNamedElsewhereIsFound) {
  expect_problem("src/ops/ops.cpp", "#include \"ops/cpu/cpu_ops.h\"\n", "ops/make_ops.cpp");
  expect_problem("src/ops/cuda/a.cu", "#include \"ops/cpu/cpu_ops.h\"\n",
                 "belongs to src/ops/cpu/");
  expect_problem("src/ops/cpu/a.cpp", "#include \"ops/cuda/a.h\"\n", "belongs to src/ops/cuda/");
  expect_problem("src/net/a.cpp", "#include \"reference/reference.h\"\n", "belongs to tests/");
  expect_clean("src/ops/make_ops.cpp",
               "#include \"ops/cpu/cpu_ops.h\"\n#include \"ops/cuda/a.h\"\n");
}

TEST_F(PlantedTree, CallsThatEndTheProgramAreFound) {
  expect_problem("src/net/a.cpp", "void f() { std::abort(); }\n", "calls abort(");
  expect_problem("src/net/a.cpp", "void f() { exit (1); }\n", "calls exit");
  expect_problem("src/net/a.cpp", "void f() { _exit(1); }\n", "calls _exit");
  expect_problem("src/net/a.cpp", "void f() { LOG(FATAL) << 1; }\n", "LOG(FATAL");
  expect_problem("src/net/a.cpp", "void f() { CHECK(true); }\n", "CHECK(");
  expect_problem("src/net/a.cpp", "void f() { DCHECK_EQ(1, 2); }\n", "DCHECK_EQ(");
  expect_clean("src/net/a.cpp", "// abort() and exit(1)\n/* CHECK(1)\n abort() */ int x;\n");
  expect_clean("src/net/a.cpp", "const char* s = \"exit(1) \\\" abort()\"; char c = '\"';\n");
  expect_clean("src/net/a.cpp", "const char* s = R\"(a \" abort() )\"; int n = 1'000;\n");
  expect_clean("src/net/a.cpp", "void f() { CUDA_CHECK(g()); on_exit_of(1); LOG(INFO) << 1; }\n");
  expect_clean("tools/a.cpp", "int main() { exit(1); }\n");
}

TEST_F(PlantedTree, AMissingCommentIsFound) {
  plant("tests/ops/a_test.cpp", "#include <vector>\n");
  plant("tools/b.cpp", "\n// Late.\n");
  plant("src/base/c.h", "// Fine.\n");
  plant("src/base/d.txt", "not a source\n");
  EXPECT_EQ(join(check_floors(root_.string()), "|"),
            "tests/ops/a_test.cpp:1: does not open with a comment|"
            "tools/b.cpp:1: does not open with a comment");
}

TEST_F(PlantedTree, TheLineIsRightBehindALongComment) {
  const auto found = problems("src/net/a.cpp", "/* one\n two */\nint x;\nvoid f() { abort(); }\n");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0], "src/net/a.cpp:5: calls abort(");
}

}  // namespace
}  // namespace crema
