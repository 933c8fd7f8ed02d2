#include "kernels/native/native_products.h"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/native/cublaslt.h"
#include "tests/kernels/native_laws.h"
#include "tests/support/emulated_accelerator.h"
#include "tests/support/fake_cublaslt.h"
#include "tests/support/throws.h"

namespace shardtool::kernels {
namespace {

using test::EmulatedAccelerator;
using test::has_fake_cublaslt;
using test::kFakeCublasLt;
using Pace = EmulatedAccelerator::Pace;

template <class Result, class... Args>
Result turn_cublaslt(const char* knob, Args... args) {
  return test::turn<Result>(kFakeCublasLt, knob, args...);
}

float decoded_16(Dtype dtype, std::uint32_t pattern) {
  const auto element = static_cast<std::uint16_t>(pattern);
  float value = 0;
  to_floats(dtype, reinterpret_cast<const std::byte*>(&element), 1, &value);
  return value;
}
std::uint32_t encoded_16(Dtype dtype, float value) {
  std::uint16_t element = 0;
  from_floats(dtype, &value, 1, reinterpret_cast<std::byte*>(&element));
  return element;
}

TEST_CASE("a float is stored as the nearest element, of two the even one, up to infinity") {
  struct SixteenBits {
    Dtype dtype;
    std::uint32_t infinity;
    float beyond;  ///< value one step above the largest number
  };
  for (const auto& [dtype, infinity, beyond] :
       {SixteenBits{Dtype::kF16, 0x7c00, 65536.0F}, SixteenBits{Dtype::kBF16, 0x7f80, HUGE_VALF}}) {
    CAPTURE(to_string(dtype));
    i64 wrong = 0;
    for (std::uint32_t low = 0; low + 1 < infinity; ++low) {
      const float a = decoded_16(dtype, low);
      const float b = decoded_16(dtype, low + 1);
      const float middle = a + (b - a) / 2;
      const std::uint32_t even = low % 2 == 0 ? low : low + 1;
      const bool is_nearest = encoded_16(dtype, a) == low && encoded_16(dtype, middle) == even &&
                              encoded_16(dtype, std::nextafter(middle, a)) == low &&
                              encoded_16(dtype, std::nextafter(middle, b)) == low + 1 &&
                              encoded_16(dtype, -a) == (low | 0x8000);
      wrong += is_nearest ? 0 : 1;
    }
    CHECK(wrong == 0);
    CHECK(encoded_16(dtype, HUGE_VALF) == infinity);
    CHECK(encoded_16(dtype, -HUGE_VALF) == (infinity | 0x8000));
    CHECK(encoded_16(dtype, beyond) == infinity);
    CHECK(std::isnan(decoded_16(dtype, encoded_16(dtype, std::nanf("")))));
  }
  CHECK(encoded_16(Dtype::kF16, 65519.0F) == 0x7bff);
  CHECK(encoded_16(Dtype::kF16, 65520.0F) == 0x7c00);
  CHECK(encoded_16(Dtype::kF16, 3.4e38F) == 0x7c00);
}

TEST_CASE("floats are stored as they are in F32, and other formats are no floats") {
  const std::vector<float> values{1.5F, -0.0F, 1e-45F, HUGE_VALF};
  std::vector<float> stored(values.size());
  from_floats(Dtype::kF32, values.data(), std::ssize(values),
              reinterpret_cast<std::byte*>(stored.data()));
  CHECK(same_numbers(stored, values));
  CHECK_FALSE(is_float_storage(Dtype::kF64));
  CHECK_FALSE(is_float_storage(Dtype::kF8E4M3));
  CHECK_FALSE(is_float_storage(Dtype::kI8));
}

TEST_CASE("a library's products of any sizes, strides and places are the CPU's") {
  if (!has_fake_cublaslt()) return;
  for (const Pace pace : {Pace::kEager, Pace::kLate}) {
    EmulatedAccelerator accelerator(pace, {}, kFakeCublasLt);
    REQUIRE(accelerator.product_library().is_here());
    CHECK(rc::check("native", [&] { native_law(accelerator); }));
    CHECK(turn_cublaslt<int>("fake_cublaslt_alive") == 1);
  }
  CHECK(turn_cublaslt<int>("fake_cublaslt_alive") == 0);
}

/// Error of one product of 3 x 2 by 2 x 1, if any.
std::optional<Error> failure_of_one_product(i64 repeats = 1) {
  return testing::error_of([&] {
    EmulatedAccelerator accelerator(Pace::kEager, {}, kFakeCublasLt);
    if (!accelerator.product_library().is_here()) return 0;
    Workbench bench(&accelerator);
    const std::vector<float> w{1, 2, 3, 4, 5, 6};
    const std::vector<float> x{1, 10};
    std::vector<float> y(3);
    const float* const w_there = bench.in(w);
    const float* const x_there = bench.in(x);
    float* const y_there = bench.out(y);
    for (i64 i = 0; i < repeats; ++i) {
      accelerator.run(
          NativeProducts{{Dtype::kF32, reinterpret_cast<const std::byte*>(w_there), 3, 2},
                         {Dtype::kF32, reinterpret_cast<const std::byte*>(x_there), 1, 2},
                         {y_there, 1, 3},
                         false});
    }
    bench.finish();
    CHECK(y == std::vector<float>{21, 43, 65});
    return 0;
  });
}

TEST_CASE("whatever call of the library fails is named, and nothing is left behind") {
  if (!has_fake_cublaslt()) return;
  for (const char* call : {"cublasLtCreate", "cublasLtMatmulDescCreate",
                           "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
                           "cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceSetAttribute",
                           "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"}) {
    CAPTURE(call);
    turn_cublaslt<void>("fake_cublaslt_fails", call);
    const auto error = failure_of_one_product();
    turn_cublaslt<void>("fake_cublaslt_fails", "");
    REQUIRE(error);
    CHECK(error->code() == ErrorCode::kDeviceFailed);
    CHECK(error->message() == "the GPU failed: cuBLASLt says a planned failure");
    CHECK(error->notes().at(0).second == call);
    CHECK(turn_cublaslt<int>("fake_cublaslt_alive") == 0);
  }
  CHECK_FALSE(failure_of_one_product());
}

TEST_CASE("sizes for which the library knows no way are told") {
  if (!has_fake_cublaslt()) return;
  turn_cublaslt<void>("fake_cublaslt_knows_ways", false);
  const auto error = failure_of_one_product();
  turn_cublaslt<void>("fake_cublaslt_knows_ways", true);
  REQUIRE(error);
  CHECK(error->exit_status() == 6);
  CHECK(error->message() == "cuBLASLt knows no way to multiply 3 x 2 by 2 x 1 of F32");
}

TEST_CASE("the library is asked once for a way to compute products of the same shape") {
  if (!has_fake_cublaslt()) return;
  const int asked = turn_cublaslt<int>("fake_cublaslt_asked");
  const int multiplied = turn_cublaslt<int>("fake_cublaslt_multiplied");
  CHECK_FALSE(failure_of_one_product(5));
  CHECK(turn_cublaslt<int>("fake_cublaslt_asked") == asked + 1);
  CHECK(turn_cublaslt<int>("fake_cublaslt_multiplied") == multiplied + 5);
}

TEST_CASE("a library that is missing, or is another, is told with what was tried") {
  const std::string not_built = "this program was built without cuBLASLt";
  const auto said = [&](const std::string& file) {
    EmulatedAccelerator accelerator(Pace::kEager, {}, file);
    const ProductLibrary found = accelerator.product_library();
    CHECK_FALSE(found.is_here());
    return found.missing;
  };
  const std::string missing = said("/nowhere/libcublasLt.so.13");
  const std::string other = said("libm.so.6");
  if (kFakeCublasLt.empty()) {
    CHECK(missing == not_built);
    return;
  }
  CHECK(missing.starts_with("cuBLASLt cannot be opened (/nowhere/libcublasLt.so.13: "));
  CHECK(other == "libm.so.6 has no cublasLtGetVersion");
  CHECK(found_cublaslt(kFakeCublasLt) == "cuBLASLt 13.1.2 (" + kFakeCublasLt + ")");
}

TEST_CASE("the library itself begins where there is a GPU, or says that it does not") {
  std::string found;
  if (const auto missing = testing::error_of([&] { return found = found_cublaslt(""); })) {
    std::cout << "SKIPPED: " << missing->message() << "\n";
    return;
  }
  const size_t begin = found.find('(') + 1;
  EmulatedAccelerator accelerator(Pace::kEager, {}, found.substr(begin, found.find(')') - begin));
  const auto error = testing::error_of([&] { return accelerator.product_library().name; });
  if (!error) return;
  CHECK(error->code() == ErrorCode::kDeviceFailed);
  CHECK(error->message() == "the GPU failed: cuBLASLt says the library was not initialized");
  CHECK(error->notes().at(0).second == "cublasLtCreate");
}

}  // namespace
}  // namespace shardtool::kernels
