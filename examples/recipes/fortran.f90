! A model that owns its temperature, and a subroutine that works on any field.
module model
   use, intrinsic :: iso_c_binding, only: c_double, c_int, c_loc, c_ptr
   implicit none
   private
   real(c_double), allocatable, target :: t(:, :, :)

contains

   subroutine model_start(ni, nj, nk) bind(c)
      integer(c_int), value :: ni, nj, nk
      allocate (t(ni, nj, nk), source=280.0_c_double)
   end subroutine model_start

   type(c_ptr) function model_temperature() bind(c)
      model_temperature = c_loc(t)
   end function model_temperature

   subroutine model_end() bind(c)
      deallocate (t)
   end subroutine model_end

   ! Cools the lowest level of a field without gaps.
   subroutine cool(ni, nj, nk, field, by) bind(c)
      integer(c_int), value :: ni, nj, nk
      real(c_double), intent(inout) :: field(ni, nj, nk)
      real(c_double), value :: by
      field(:, :, 1) = field(:, :, 1) - by
   end subroutine cool

end module model
