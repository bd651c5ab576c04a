#!/usr/bin/python3
"""What Crema writes, OpenCV's dnn module reads: trains a small net, then compares the deploy net's probabilities.

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


def main():
    crema = os.path.join(os.path.abspath(sys.argv[1]), 'crema')
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        loss = 'layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" }\n'
        prob = 'layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" }\n'
        open('train.prototxt', 'w').write(SOURCE + BODY + loss)
        open('deploy.prototxt', 'w').write(INPUT + BODY + prob)
        open('solver.prototxt', 'w').write('net: "train.prototxt" base_lr: 0.0001 lr_policy: "fixed" momentum: 0.9 '
                                           'max_iter: 5 snapshot_prefix: "s" random_seed: 3\n')
        subprocess.run([crema, 'train', '--cpu', '--solver=solver.prototxt'], check=True, stderr=subprocess.DEVNULL)
        picture = numpy.random.RandomState(1).randn(1, 3, 16, 15).astype('f4')
        with h5py.File('in.h5', 'w') as file:
            file['inputs/data'] = picture
        subprocess.run([crema, 'run', '--cpu', '--model=deploy.prototxt', '--weights=s_iter_5.caffemodel',
                        '--input=in.h5', '--output=out.h5'], check=True, stderr=subprocess.DEVNULL)
        with h5py.File('out.h5', 'r') as file:
            ours = file['outputs/prob'][()]
        peer = cv2.dnn.readNetFromCaffe('deploy.prototxt', 's_iter_5.caffemodel')
        peer.setInput(picture)
        difference = float(numpy.abs(peer.forward().reshape(ours.shape) - ours).max())
    print('probabilities %s, largest difference %.2g' % (ours.ravel().round(3), difference))
    return int(difference > 1e-5 or ours.max() > 0.9)  # a sure answer would compare nothing


if __name__ == '__main__':
    sys.exit(main())
