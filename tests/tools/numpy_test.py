# What `crema convert` writes for NumPy is read by NumPy itself. Exit status 77 where it is missing.
import os
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    given = {"conv/1x1/0": numpy.arange(6, dtype="f4").reshape(2, 3), "conv/1x1/1": numpy.ones(2, "f8")}
    numpy.savez(os.path.join(folder, "in.npz"), **given)
    crema = os.path.join(sys.argv[1], "crema")
    for source, target in (("in.npz", "w.caffemodel"), ("w.caffemodel", "out.npz")):
        subprocess.run([crema, "convert", source, target], cwd=folder, check=True)
    read = numpy.load(os.path.join(folder, "out.npz"))
    assert sorted(read.files) == sorted(given), read.files
    for name, array in given.items():
        assert read[name].shape == array.shape and (read[name] == array).all(), name
