! Times calls of `fortran_calls.py` in turns: program small|large <rounds>.
program fortran_calls
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64, real64
  use bench
  implicit none
  abstract interface
    subroutine hand(addresses, extents) bind(C)
      import
      integer(c_int64_t), intent(in) :: addresses(*), extents(*)
    end subroutine hand
  end interface
  procedure(hand), pointer :: by_hand
  real(real64), allocatable, target :: f(:, :, :, :)
  integer(c_int64_t) :: address(1), addresses(10)
  integer(int64) :: begin, now, rate
  integer :: calls, call, round, rounds, i
  character(20) :: argument

  call get_command_argument(2, argument)
  read (argument, *) rounds
  call get_command_argument(1, argument)
  if (argument == 'small') then
    calls = 300
    allocate (f(8, 8, 8, 100), source=1.0_real64)
  else
    calls = 2
    allocate (f(256, 256, 80, 10), source=1.0_real64)
  end if
  call by_hand_at(address)
  call c_f_procpointer(transfer(address(1), c_null_funptr), by_hand)
  addresses = [(transfer(c_loc(f(1, 1, 1, i)), 0_c_int64_t), i=1, 10)]
  do round = 1, rounds
    call start()
    do call = 1, calls
      call run( &
      f(:, :, :, 1), f(:, :, :, 2), f(:, :, :, 3), f(:, :, :, 4), f(:, :, :, 5), f(:, :, :, 6), &
      f(:, :, :, 7), f(:, :, :, 8), f(:, :, :, 9), f(:, :, :, 10))
    end do
    call tell('run', calls)
    call start()
    do call = 1, calls
      call fortran_call( &
      f(:, :, :, 1), f(:, :, :, 2), f(:, :, :, 3), f(:, :, :, 4), f(:, :, :, 5), f(:, :, :, 6), &
      f(:, :, :, 7), f(:, :, :, 8), f(:, :, :, 9), f(:, :, :, 10))
    end do
    call tell('fortran_call', calls)
    call start()
    do call = 1, calls
      call copying( &
      f(:, :, :, 1), f(:, :, :, 2), f(:, :, :, 3), f(:, :, :, 4), f(:, :, :, 5), f(:, :, :, 6), &
      f(:, :, :, 7), f(:, :, :, 8), f(:, :, :, 9), f(:, :, :, 10))
    end do
    call tell('copying', calls)
    call start()
    do call = 1, calls
      call by_hand(addresses, shape(f, kind=c_int64_t))
    end do
    call tell('by_hand', calls)
    call python_call( &
      f(:, :, :, 1), f(:, :, :, 2), f(:, :, :, 3), f(:, :, :, 4), f(:, :, :, 5), f(:, :, :, 6), &
      f(:, :, :, 7), f(:, :, :, 8), f(:, :, :, 9), f(:, :, :, 10))
    if (calls < 300) cycle
    call start()
    do call = 1, calls
      call run_many( &
      f(:, :, :, 1), f(:, :, :, 2), f(:, :, :, 3), f(:, :, :, 4), f(:, :, :, 5), f(:, :, :, 6), &
      f(:, :, :, 7), f(:, :, :, 8), f(:, :, :, 9), f(:, :, :, 10), f(:, :, :, 11), f(:, :, :, 12), &
      f(:, :, :, 13), f(:, :, :, 14), f(:, :, :, 15), f(:, :, :, 16), f(:, :, :, 17), f(:, :, :, 18), &
      f(:, :, :, 19), f(:, :, :, 20), f(:, :, :, 21), f(:, :, :, 22), f(:, :, :, 23), f(:, :, :, 24), &
      f(:, :, :, 25), f(:, :, :, 26), f(:, :, :, 27), f(:, :, :, 28), f(:, :, :, 29), f(:, :, :, 30), &
      f(:, :, :, 31), f(:, :, :, 32), f(:, :, :, 33), f(:, :, :, 34), f(:, :, :, 35), f(:, :, :, 36), &
      f(:, :, :, 37), f(:, :, :, 38), f(:, :, :, 39), f(:, :, :, 40), f(:, :, :, 41), f(:, :, :, 42), &
      f(:, :, :, 43), f(:, :, :, 44), f(:, :, :, 45), f(:, :, :, 46), f(:, :, :, 47), f(:, :, :, 48), &
      f(:, :, :, 49), f(:, :, :, 50), f(:, :, :, 51), f(:, :, :, 52), f(:, :, :, 53), f(:, :, :, 54), &
      f(:, :, :, 55), f(:, :, :, 56), f(:, :, :, 57), f(:, :, :, 58), f(:, :, :, 59), f(:, :, :, 60), &
      f(:, :, :, 61), f(:, :, :, 62), f(:, :, :, 63), f(:, :, :, 64), f(:, :, :, 65), f(:, :, :, 66), &
      f(:, :, :, 67), f(:, :, :, 68), f(:, :, :, 69), f(:, :, :, 70), f(:, :, :, 71), f(:, :, :, 72), &
      f(:, :, :, 73), f(:, :, :, 74), f(:, :, :, 75), f(:, :, :, 76), f(:, :, :, 77), f(:, :, :, 78), &
      f(:, :, :, 79), f(:, :, :, 80), f(:, :, :, 81), f(:, :, :, 82), f(:, :, :, 83), f(:, :, :, 84), &
      f(:, :, :, 85), f(:, :, :, 86), f(:, :, :, 87), f(:, :, :, 88), f(:, :, :, 89), f(:, :, :, 90), &
      f(:, :, :, 91), f(:, :, :, 92), f(:, :, :, 93), f(:, :, :, 94), f(:, :, :, 95), f(:, :, :, 96), &
      f(:, :, :, 97), f(:, :, :, 98), f(:, :, :, 99), f(:, :, :, 100))
    end do
    call tell('run_many', calls)
    call many_python( &
      f(:, :, :, 1), f(:, :, :, 2), f(:, :, :, 3), f(:, :, :, 4), f(:, :, :, 5), f(:, :, :, 6), &
      f(:, :, :, 7), f(:, :, :, 8), f(:, :, :, 9), f(:, :, :, 10), f(:, :, :, 11), f(:, :, :, 12), &
      f(:, :, :, 13), f(:, :, :, 14), f(:, :, :, 15), f(:, :, :, 16), f(:, :, :, 17), f(:, :, :, 18), &
      f(:, :, :, 19), f(:, :, :, 20), f(:, :, :, 21), f(:, :, :, 22), f(:, :, :, 23), f(:, :, :, 24), &
      f(:, :, :, 25), f(:, :, :, 26), f(:, :, :, 27), f(:, :, :, 28), f(:, :, :, 29), f(:, :, :, 30), &
      f(:, :, :, 31), f(:, :, :, 32), f(:, :, :, 33), f(:, :, :, 34), f(:, :, :, 35), f(:, :, :, 36), &
      f(:, :, :, 37), f(:, :, :, 38), f(:, :, :, 39), f(:, :, :, 40), f(:, :, :, 41), f(:, :, :, 42), &
      f(:, :, :, 43), f(:, :, :, 44), f(:, :, :, 45), f(:, :, :, 46), f(:, :, :, 47), f(:, :, :, 48), &
      f(:, :, :, 49), f(:, :, :, 50), f(:, :, :, 51), f(:, :, :, 52), f(:, :, :, 53), f(:, :, :, 54), &
      f(:, :, :, 55), f(:, :, :, 56), f(:, :, :, 57), f(:, :, :, 58), f(:, :, :, 59), f(:, :, :, 60), &
      f(:, :, :, 61), f(:, :, :, 62), f(:, :, :, 63), f(:, :, :, 64), f(:, :, :, 65), f(:, :, :, 66), &
      f(:, :, :, 67), f(:, :, :, 68), f(:, :, :, 69), f(:, :, :, 70), f(:, :, :, 71), f(:, :, :, 72), &
      f(:, :, :, 73), f(:, :, :, 74), f(:, :, :, 75), f(:, :, :, 76), f(:, :, :, 77), f(:, :, :, 78), &
      f(:, :, :, 79), f(:, :, :, 80), f(:, :, :, 81), f(:, :, :, 82), f(:, :, :, 83), f(:, :, :, 84), &
      f(:, :, :, 85), f(:, :, :, 86), f(:, :, :, 87), f(:, :, :, 88), f(:, :, :, 89), f(:, :, :, 90), &
      f(:, :, :, 91), f(:, :, :, 92), f(:, :, :, 93), f(:, :, :, 94), f(:, :, :, 95), f(:, :, :, 96), &
      f(:, :, :, 97), f(:, :, :, 98), f(:, :, :, 99), f(:, :, :, 100))
  end do

contains

  subroutine start()
    call system_clock(begin, rate)
  end subroutine start

  subroutine tell(what, count)
    character(*), intent(in) :: what
    integer, intent(in) :: count
    call system_clock(now)
    print '(a, 1x, f0.1)', what, real(now - begin, real64) * 1e9_real64 / rate / count
    flush (6)
  end subroutine tell

end program fortran_calls
