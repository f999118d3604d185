import { type BusUser, rolesOf } from '../../subjects.ts';

/** Of nats-server, by its sources 4 to 9 s. Streams that are not found after this may have lost most of their servers. */
const ELECTION_MS = 10_000;

/**
 * How long a process of a cluster counts as ready after a reconnect while its streams are looked up. Not at all in a router: frames that are published while
 * their stream has no leader are not kept, so new calls are refused with 503, and a call that ends is left to its redelivery. A process without a user of its
 * own may be a router.
 */
export function electionMsOf(user: BusUser | null): number {
  const isRouter = user === null || rolesOf(user).some((role) => role === 'router-gateway' || role === 'router-worker');
  return isRouter ? 0 : ELECTION_MS;
}
