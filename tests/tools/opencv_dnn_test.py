#!/usr/bin/python3
"""What Crema writes, OpenCV's dnn module reads: a small net that is trained here, then models of the repository with
drawn weights, that `crema convert` wrote; outputs are compared.

    opencv_dnn_test.py BIN_DIR      exit status 77: a Python module is missing, nothing was tested
"""
import os
import subprocess
import sys
import tempfile

try:
    import cv2
    import h5py
    import numpy
except ImportError as error:
    print('skipped: %s' % error)
    sys.exit(77)

BODY = '''
layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
  convolution_param { num_output: 6 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
layer { name: "bn1" type: "BatchNorm" bottom: "conv1" top: "conv1" }
layer { name: "scale1" type: "Scale" bottom: "conv1" top: "conv1" scale_param { bias_term: true } }
layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
  pooling_param { pool: MAX kernel_size: 3 stride: 2 } }
layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
  convolution_param { num_output: 8 kernel_size: 3 group: 2 weight_filler { type: "msra" } } }
layer { name: "norm2" type: "LRN" bottom: "conv2" top: "norm2" lrn_param { local_size: 3 alpha: 0.01 } }
layer { name: "pool2" type: "Pooling" bottom: "norm2" top: "pool2"
  pooling_param { pool: AVE kernel_size: 2 stride: 2 } }
layer { name: "ip" type: "InnerProduct" bottom: "pool2" top: "ip"
  inner_product_param { num_output: 5 weight_filler { type: "gaussian" std: 0.02 } } }
'''
SOURCE = '''
layer { name: "source" type: "DummyData" top: "data" top: "label"
  dummy_data_param { shape { dim: 4 dim: 3 dim: 16 dim: 15 } shape { dim: 4 }
    data_filler { type: "gaussian" std: 1 } data_filler { type: "constant" value: 2 } } }
'''
INPUT = 'layer { name: "data" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 16 dim: 15 } } }\n'


# Blobs of models whose values are compared. OpenCV sorts detections by score, so their inputs stand for them.
MODELS = {
    'lenet': ['prob'],
    'cifar10_full': ['prob'],
    'squeezenet_v1.1': ['prob'],
    'resnet18': ['fc1000'],
    'ssd_boxes': ['mbox_loc', 'mbox_conf_flatten', 'mbox_priorbox'],
}


def call(program, *arguments):
    subprocess.run([program] + list(arguments), check=True, stderr=subprocess.DEVNULL)


def run_both(crema, model, weights, picture, outputs):
    """The largest difference, relative to values above 1, between Crema's outputs and OpenCV's; Crema's by name."""
    with h5py.File('in.h5', 'w') as file:
        file['inputs/data'] = picture
    call(crema, 'run', '--cpu', '--model=' + model, '--weights=' + weights, '--input=in.h5', '--output=out.h5',
         '--outputs=' + ','.join(outputs))
    with h5py.File('out.h5', 'r') as file:
        ours = {name: file['outputs/' + name][()] for name in outputs}
    peer = cv2.dnn.readNetFromCaffe(model, weights)
    peer.setInput(picture)
    difference = 0
    for name, theirs in zip(outputs, peer.forward(outputs)):
        scale = max(1, float(numpy.abs(ours[name]).max()))
        difference = max(difference, float(numpy.abs(theirs.reshape(ours[name].shape) - ours[name]).max()) / scale)
    return difference, ours


def test_trained(crema):
    loss = 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }\n'
    prob = 'layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }\n'
    open('train.prototxt', 'w').write(SOURCE + BODY + loss)
    open('deploy.prototxt', 'w').write(INPUT + BODY + prob)
    open('solver.prototxt', 'w').write('net: "train.prototxt" base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 '
                                       'max_iter: 5 snapshot_prefix: "s" random_seed: 3\n')
    call(crema, 'train', '--cpu', '--solver=solver.prototxt')
    picture = numpy.random.RandomState(1).randn(1, 3, 16, 15).astype('f4')
    difference, ours = run_both(crema, 'deploy.prototxt', 's_iter_5.caffemodel', picture, ['prob'])
    print('trained: probabilities %s, largest difference %.2g' % (ours['prob'].ravel().round(3), difference))
    return difference <= 1e-5 and ours['prob'].max() < 0.9  # a sure answer would compare nothing


def draw_weights(crema, model, random):
    """Writes weights.caffemodel with weights as msra draws them; the input's shape."""
    call(crema, 'run', '--cpu', '--model=' + model, '--output=shapes.h5', '--backward', '--outputs=data')
    arrays = {}

    def draw(name, values):
        if isinstance(values, h5py.Dataset):
            fan = values.size / values.shape[0] if values.ndim > 1 else 200
            arrays[name] = (random.randn(*values.shape) * numpy.sqrt(2 / fan)).astype('f4')
            if name.endswith('/2'):  # BatchNorm: variances, and their factor
                arrays[name][:] = 1
                arrays[name[:-1] + '1'] = 0.5 + random.rand(*arrays[name[:-1] + '1'].shape).astype('f4')

    with h5py.File('shapes.h5', 'r') as file:
        file['params_after'].visititems(draw)
        shape = file['outputs/data'].shape
    numpy.savez('weights.npz', **arrays)
    call(crema, 'convert', 'weights.npz', 'weights.caffemodel')
    return shape


def test_model(crema, name, outputs):
    model = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../models', name, 'deploy.prototxt')
    random = numpy.random.RandomState(5)
    picture = random.randn(*draw_weights(crema, model, random)).astype('f4')
    difference, ours = run_both(crema, model, 'weights.caffemodel', picture, outputs)
    spread = min(float(values.std()) for values in ours.values())
    print('%s: least spread %.2g, largest difference %.2g' % (name, spread, difference))
    return difference <= 1e-5 and spread > 1e-4


def main():
    crema = os.path.join(os.path.abspath(sys.argv[1]), 'crema')
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        passed = [test_trained(crema)] + [test_model(crema, name, outputs) for name, outputs in MODELS.items()]
    return int(not all(passed))


if __name__ == '__main__':
    sys.exit(main())
