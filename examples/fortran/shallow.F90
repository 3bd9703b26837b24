! Shallow water on a periodic plane, and a dye that it carries. The arrays and the time loop are
! Fortran's; the stencils are those of stencils.py. Compile with -DWITH_MPI for many ranks, which
! divide I.
program shallow
#ifdef WITH_MPI
  use mpi
#endif
  use, intrinsic :: iso_fortran_env, only: real64
  use model
  implicit none
  integer, parameter :: whole = 96, nj = 64, nk = 2
  real(real64), parameter :: dt = 0.2_real64
  real(real64), allocatable, target :: h(:, :, :), u(:, :, :), v(:, :, :), dye(:, :, :), next(:, :, :)
  integer :: ni, first, rank, ranks, steps, step, i, j, k, unit
  character(200) :: argument, out
#ifdef WITH_MPI
  integer :: comm, error
  call mpi_init(error)
  call mpi_comm_size(mpi_comm_world, ranks, error)
  call mpi_cart_create(mpi_comm_world, 2, [ranks, 1], [.true., .true.], .false., comm, error)
  call mpi_comm_rank(comm, rank, error)
#else
  ranks = 1
  rank = 0
#endif
  call get_command_argument(1, argument)
  read (argument, *) steps
  call get_command_argument(2, out)

  ni = whole / ranks
  first = rank * ni
  allocate (h(0:ni + 1, 0:nj + 1, nk), u(0:ni + 1, 0:nj + 1, nk), v(0:ni + 1, 0:nj + 1, nk), &
            dye(0:ni + 1, 0:nj + 1, nk), next(0:ni + 1, 0:nj + 1, nk), source=0.0_real64)
  do k = 1, nk
    do j = 1, nj
      do i = 1, ni
        h(i, j, k) = k * 90.0_real64 / (36 + (first + i - 30)**2 + (j - 32)**2)
        dye(i, j, k) = mod((first + i - 1) / 8 + (j - 1) / 8, 2)
      end do
    end do
  end do

#ifdef WITH_MPI
  call start(h, u, v, dye, next, comm)
#else
  call start(h, u, v, dye, next)
#endif
  do step = 1, steps
    call exchange('height')
    call accelerate(h, u, v, pull=dt)
    call exchange('wind')
    call rise(u, v, h, depth=dt)
    if (mod(step, 2) == 1) then
      call exchange('dye')
      call carry(u, v, dye, next, dt)
    else
      call exchange('out')
      call carry(u, v, next, dye, dt)
    end if
  end do
  call finish()

  write (argument, '(a, a, i0)') trim(out), '.', rank
  open (newunit=unit, file=argument, access='stream', form='unformatted', status='replace')
  write (unit) h(1:ni, 1:nj, :), merge(next(1:ni, 1:nj, :), dye(1:ni, 1:nj, :), mod(steps, 2) == 1)
  close (unit)
  call dlfield_deallocate(h)
  call dlfield_deallocate(u)
  call dlfield_deallocate(v)
  call dlfield_deallocate(dye)
  call dlfield_deallocate(next)
#ifdef WITH_MPI
  call mpi_finalize(error)
#endif
end program shallow
