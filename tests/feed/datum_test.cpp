// Datum: read as the generated parser would, but strict about fields of another type.
#include "feed/datum.h"

#include "crema.pb.h"
#include "feed_testing.h"

namespace crema::testing {
namespace {

DatumView parse(const std::string& record) {
  DatumView view;
  parse_datum(record, view);
  return view;
}

TEST(Datum, ReadsWhatTheGeneratedCodeWrites) {
  Datum datum;
  datum.set_channels(3);
  datum.set_height(1000);
  datum.set_width(1);
  datum.set_label(-5);
  datum.set_encoded(true);
  const std::string pixels(3000, '\xff');
  datum.set_data(pixels);
  for (int i = 0; i < 300; ++i) datum.add_float_data(0.5f * i);
  const std::string record = datum.SerializeAsString();
  const DatumView view = parse(record);
  EXPECT_EQ(view.channels, 3);
  EXPECT_EQ(view.height, 1000);
  EXPECT_EQ(view.width, 1);
  EXPECT_EQ(view.label, -5);
  EXPECT_TRUE(view.is_encoded);
  EXPECT_EQ(view.data, pixels);
  ASSERT_EQ(view.floats.size(), 300u);
  EXPECT_EQ(view.floats[299], 149.5f);
}

TEST(Datum, ReadsPackedFloats) {
  const std::string record("\x32\x08\x00\x00\x80\x3f\x00\x00\x00\x40", 10);
  EXPECT_EQ(parse(record).floats, (std::vector<float>{1.f, 2.f}));
}

TEST(Datum, WritesWhatTheGeneratedCodeReads) {
  Datum datum;
  ASSERT_TRUE(datum.ParseFromString(write_datum({3, 2, 1, 9, true}, "abc")));
  EXPECT_EQ(datum.channels(), 3);
  EXPECT_EQ(datum.height(), 2);
  EXPECT_EQ(datum.width(), 1);
  EXPECT_EQ(datum.label(), 9);
  EXPECT_TRUE(datum.encoded());
  EXPECT_EQ(datum.data(), "abc");
}

TEST(Datum, StartsAnewWithEachRecord) {
  DatumView view = parse(write_datum({3, 2, 1, 9, true}, "abc"));
  parse_datum("", view);
  EXPECT_EQ(view.channels + view.height + view.width + view.label, 0);
  EXPECT_FALSE(view.is_encoded);
  EXPECT_TRUE(view.data.empty());
}

TEST(Datum, PassesOverUnknownFields) {
  // Field 20 as varint, 64 bits, bytes and 32 bits, then the label.
  const std::string record(
      "\xa0\x01\x96\x01\xa1\x01"
      "12345678"
      "\xa2\x01\x02xy\xa5\x01"
      "1234\x28\x07",
      27);
  EXPECT_EQ(parse(record).label, 7);
}

TEST(Datum, TellsAnAnnotatedDatum) {
  const std::string inner = ramp_datum(1, 2, 2, 3);
  const std::string record =
      std::string("\x0a") + static_cast<char>(inner.size()) + inner + "\x10\x01";
  EXPECT_HAS(error_of([&] { parse(record); }), "AnnotatedDatum");
}

TEST(Datum, RefusesBrokenRecords) {
  const std::string good = ramp_datum(1, 4, 4, 3);
  const std::string rows[] = {good.substr(0, good.size() / 2),
                              "\x08",
                              "\x22\x05"
                              "abc",
                              "\x23",
                              "\x2a\x01x",
                              "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
                              "just some text, no record"};
  for (const std::string& row : rows) {
    SCOPED_TRACE(row);
    EXPECT_HAS(error_of([&] { parse(row); }), "not a Datum");
  }
}

}  // namespace
}  // namespace crema::testing
