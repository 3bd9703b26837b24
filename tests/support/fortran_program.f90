! Each case calls functions of `support.fortran_functions` with arrays of its own.
program cases
  use, intrinsic :: iso_c_binding
  use model
  implicit none
  type :: cell
    real(c_double) :: t, q
    integer(c_int32_t) :: n
  end type cell
  character(64) :: name, how
  character(:), allocatable :: message
  integer :: status, i
  real(c_double), target :: x(6), y(6), z(6, 4), wide(4, 4, 1), narrow(1, 2, 1)
  real(c_double), allocatable, target :: grown(:)

  call get_command_argument(1, name)
  call get_command_argument(2, how)
  x = 1; y = 2; z = 3; wide = 4; narrow = 5
  select case (name)
! CASES
  case ('rank0')
    block
      real(c_double), target :: a
      a = 1
      call rank0(a)
      call told('rank0', c_loc(a), c_loc(a), [integer ::])
      print *, 'changed', a == 2
    end block
  case ('slices')
    call slice(z)
    call rank2(z(:, ::2))
    call told('rank2', c_loc(z(1, 1)), c_loc(z(2, 1)), [6, 2])
    call rank2(z(6:1:-2, 4:1:-1))
    call told('rank2', c_loc(z(6, 4)), c_loc(z(4, 4)), [3, 4])
    call rank1(z(2, :))
    call told('rank1', c_loc(z(2, 1)), c_loc(z(2, 2)), [4])
  case ('component')
    block
      type(cell), target :: cells(0:2, -1:2)
      cells%t = 1; cells%q = 5
      call by_pointer(cells%t)
      call told('by_pointer', c_loc(cells(0, -1)%t), c_loc(cells(1, -1)%t), [3, 4])
      print *, 'changed', all(cells%t == 2) .and. all(cells%q == 5)
    end block
  case ('pointer')
    block
      real(c_double), pointer :: a(:, :)
      allocate (a(0:4, -1:3))
      a = 1
      call by_pointer(a)
      call told('by_pointer', c_loc(a(0, -1)), c_loc(a(1, -1)), [5, 5])
      deallocate (a)
      call by_pointer(a, status=status, message=message)
      call tell()
    end block
  case ('allocatable')
    block
      real(c_double), allocatable, target :: a(:, :), b(:)
      allocate (a(0:4, -1:3), source=1d0)
      call by_allocatable(a, b)
      call told('by_allocatable', c_loc(a(0, -1)), c_loc(a(1, -1)), [5, 5])
      allocate (b(1), source=40d0)
      call by_allocatable(a, b)
      call told('by_allocatable', c_loc(a(0, -1)), c_loc(a(1, -1)), [5, 5])
      print *, 'changed', all(a == 42)
      deallocate (a)
      call by_allocatable(a, status=status, message=message)
      call tell()
    end block
  case ('empty')
    call rank2(z(:, 3:2))
    allocate (grown(0))
    call rank1(grown)
  case ('one')
    call rank2(z(2:2, :))
  case ('lower bounds of the caller')
    block
      real(c_double), target :: a(-3:2, 0:1)
      a = 1
      call rank2(a)
      call told('rank2', c_loc(a(-3, 0)), c_loc(a(-2, 0)), shape(a))
    end block
  case ('only_read')
    call only_read(z, len_trim(how), status, message)
    call tell()
    print *, 'unchanged', all(z == 3)
  case ('written')
    call written(z)
    print *, 'changed', all(z == 7)
  case ('absent')
    call may_be_absent()
    call may_be_absent(b=x, name='given  ', flag=.false.)
    call may_be_absent(x, n=6)
    call may_be_absent(grown)
  case ('scalars')
    call scalars(1.5d0, -2, .true., (1d0, -1d0), 'gr'//achar(195)//achar(182)//'n', 0.5, 2.5d0, 3, &
                 4000000000_c_int64_t, (0.5, 1.0))
  case ('with_halo')
    call with_halo(wide)
  case ('halo that does not fit')
    call with_halo(narrow, status, message)
    call tell()
  case ('by_bounds')
    call by_bounds(z)
    call by_bounds(z, lbound(z))
    call by_bounds(z, [-1, 0])
    call by_bounds(z, [2, 1], status, message)
    call tell()
  case ('two halos')
    call two_halos(z, [0, 0])
    call two_halos(z, [-1, 0], status, message)
    call tell()
  case ('bounds are last')
    call bounds_are_last(z, [7])
    call bounds_are_last(z, [7], x, [0, 1], [-1])
    call bounds_are_last(z, a_lbound=[-1, 0], status=status)
  case ('by position')
    call by_position(x, 1, y, 2)
    call by_position(b=y)
    call by_position(m=3)
    call by_position(n=4)
  case ('nul')
    call fail(x, 'raise'//achar(0)//achar(0)//' ', status, message)
    call tell()
  case ('nul within')
    call fail(x, 'raise'//achar(0)//'not', status, message)
    call tell()
  case ('nul in an optional text')
    call may_be_absent(name=achar(0)//'none', status=status, message=message)
    call tell()
  case ('logicals')
    block
      logical :: mask(2, 2), made(3)
      mask = reshape([.true., .false., .false., .false.], [2, 2])
      call logicals(mask, made)
      print *, 'changed', mask, made
    end block
  case ('fail')
    if (how == 'not utf-8') how = achar(255)
    call fail(x, trim(how), status, message)
    call tell()
    print *, 'unchanged', all(x == 1)
  case ('stop')
    call fail(x, 'raise')
    print *, 'not reached'
  case ('only a message')
    call fail(x, 'raise', message=message)
    print *, 'not reached'
  case ('keep')
    call keep(x, y, trim(how), status, message)
    call tell()
  case ('keep later')
    do i = 1, 5
      call keep(x, y, '', status, message)
      if (status /= 0) error stop 'too early'
    end do
    call keep(x, y, trim(how), status, message)
    call tell()
  case ('after keep')
    call keep(x, y, 'view', status)
    call keep(x, y, 'let go', status, message)
    call tell()
  case ('persistent')
    allocate (grown(4))
    grown = 1
    call remember(grown, x)
    call add_to_state(2d0)
    print *, 'changed', all(grown == 3)
    call dlfield_deallocate(grown, status, message)
    call tell()
    print *, 'there', allocated(grown)
    call let_go()
    call dlfield_deallocate(grown, status)
    print *, 'then', status, allocated(grown)
    call dlfield_deallocate(grown, status)
    print *, 'again', status
  case ('again')
    call again(x)
    call again(x)
    call again(y)
    call again(x(:5))
    call dlfield_forget()
    call again(x)
  case ('threads')
    block
      real(c_double), target :: a(100, 8)
      a = 0
      !$omp parallel do num_threads(8) schedule(static, 1)
      do i = 1, 8
        block
          integer :: j
          do j = 1, 50
            call add(a(:, i), real(i, c_double))
          end do
        end block
      end do
      print *, 'changed', (all(a(:, i) == 50 * i), i = 1, 8)
    end block
  case ('many')
    call add(x)
    call blocks()
    do i = 1, 100000
      call add(x)
    end do
    call blocks()
    do i = 1, 3000
      call add(z(:, 1 + mod(i, 3)), 0d0)
      call fail(x, 'raise', status)
      allocate (grown(1 + mod(i, 700)))
      grown = 0
      call add(grown)
      deallocate (grown)
    end do
    call dlfield_forget()
    call blocks()
    do i = 1, 3000
      call add(z(:, 1 + mod(i, 3)), 0d0)
      call fail(x, 'raise', status)
      allocate (grown(1 + mod(i, 700)))
      grown = 0
      call add(grown)
      deallocate (grown)
    end do
    call dlfield_forget()
    call blocks()
  case ('a few')
    do i = 1, 100
      call add(x)
      call fail(x, 'raise', status, message)
    end do
    print *, 'changed', all(x == 101)
  case default
    error stop 'no such case'
  end select

contains

  !> Prints address, extents and the stride of the first dimension.
  subroutine told(label, first, second, extents)
    character(*), intent(in) :: label
    type(c_ptr), intent(in) :: first, second
    integer, intent(in) :: extents(:)
    integer(c_intptr_t) :: addresses(2)
    addresses = [transfer(first, addresses(1)), transfer(second, addresses(1))]
    print '(a, 1x, a, *(1x, i0))', 'fortran', label, addresses(1), extents, addresses(2) - addresses(1)
  end subroutine told

  subroutine slice(a)
    real(c_double), intent(inout), target :: a(:, :)
    call rank2(a(2:5, 2:3))
    call told('rank2', c_loc(a(2, 2)), c_loc(a(3, 2)), [4, 2])
  end subroutine slice

  subroutine tell()
    print '(a, i0, a, a)', 'status ', status, new_line('a'), message
  end subroutine tell

end program cases
