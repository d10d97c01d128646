import pathlib

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage

from spack.package import *


class Roofsweep(CMakePackage, CudaPackage):
    """Measures deep-learning operations on every GPU of a cluster job, and how far each is from
    the best that the same GPU can do."""

    # The source is the clone that holds this recipe, because releases have no download address yet.
    git = pathlib.Path(__file__).resolve().parents[6].as_uri()
    homepage = git

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("cpu", default=True, description="Worker for CPUs")
    variant("onednn", default=True, when="+cpu", description="oneDNN in the worker for CPUs")
    variant("post", default=True, description="Packages of roofsweep-post")

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")
    depends_on("cmake@3.24:", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi")
    depends_on("netcdf-c")
    depends_on("jansson")
    depends_on("xxhash@0.8:")
    depends_on("hwloc@2:")
    depends_on("onednn@2.6:", when="+onednn")
    depends_on("cuda@12.8:", when="+cuda")
    depends_on("cudnn@9:", when="+cuda")
    with default_args(type=("build", "run"), when="+post"):
        depends_on("python@3.11:")
        depends_on("py-matplotlib@3.6.3:")
        depends_on("py-netcdf4@1.6.2:")
        depends_on("py-pandas@1.5.3:")
        depends_on("py-xarray@2023.1:")

    def cmake_args(self):
        args = [
            self.define("ROOFSWEEP_TESTS", False),
            self.define_from_variant("ROOFSWEEP_CPU", "cpu"),
            self.define("ROOFSWEEP_ONEDNN", self.spec.satisfies("+onednn")),
            self.define_from_variant("ROOFSWEEP_CUDA", "cuda"),
        ]
        if not self.spec.satisfies("cuda_arch=none"):
            args.append(self.define_from_variant("CMAKE_CUDA_ARCHITECTURES", "cuda_arch"))
        return args
