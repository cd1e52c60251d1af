/* privileges.c - what a task can never gain, whatever it runs */
#include "agent/host/privileges.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BIT(capability) (UINT64_C(1) << (capability))

/* What docker and podman leave to root in a container. */
static const uint64_t roots =
    BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) | BIT(CAP_FSETID) | BIT(CAP_FOWNER) | BIT(CAP_MKNOD) |
    BIT(CAP_NET_RAW) | BIT(CAP_SETGID) | BIT(CAP_SETUID) | BIT(CAP_SETFCAP) | BIT(CAP_SETPCAP) |
    BIT(CAP_NET_BIND_SERVICE) | BIT(CAP_SYS_CHROOT) | BIT(CAP_KILL) | BIT(CAP_AUDIT_WRITE);

/* EINVAL: the kernel does not know it. EPERM: without CAP_SETPCAP. */
static bool is_tolerable(int result)
{
	return result == 0 || errno == EPERM || errno == EINVAL;
}

bool privileges_bound(bool root)
{
	const unsigned long locked = SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
	                             SECBIT_NO_CAP_AMBIENT_RAISE |
	                             SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED;
	uint64_t kept = root ? roots : 0;

	if (!is_tolerable(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)))
		return false;
	/* This one needs CAP_SETPCAP too, which nothing before it gives up. */
	if (!root && !is_tolerable(prctl(PR_SET_SECUREBITS, locked, 0, 0, 0)))
		return false;
	for (unsigned long at = 0; prctl(PR_CAPBSET_READ, at, 0, 0, 0) >= 0; at++)
		if (!(kept & BIT(at)) && !is_tolerable(prctl(PR_CAPBSET_DROP, at, 0, 0, 0)))
			return false;
	return true;
}

bool privileges_seal(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = { 0 };

	if (syscall(SYS_capget, &head, sets) != 0)
		return false;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		sets[i].inheritable = 0;
	return syscall(SYS_capset, &head, sets) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}
