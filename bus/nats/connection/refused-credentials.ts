import { SwitchyardError } from '#shared/errors/switchyard-error.ts';
import type { BusUser } from '../../subjects.ts';

/** Names the user and the setting, never the password. @param refusal the broker's own words */
export function refusedCredentials(user: BusUser | null, address: string, refusal: Error): SwitchyardError {
  const reason =
    user === null
      ? `a connection without a user (${refusal.message}): set NATS_PASSWORD to the password that the broker has for this service`
      : `the user '${user}' (${refusal.message}): NATS_PASSWORD is not the password that the broker has for it, or the broker has no such user`;
  return new SwitchyardError('service.unreachable', `NATS at ${address} refused ${reason}`);
}
