import { z } from 'zod';
import { settings } from './settings.ts';

export const natsSettings = { NATS_URL: settings.NATS_URL, NATS_PASSWORD: settings.NATS_PASSWORD };

const shape = z.object(natsSettings);

/** Whom a process is at the broker: the user that has its service's name, or nobody where there is no authentication. */
export function natsConfigOf<User extends string>(user: User, { NATS_URL: servers, NATS_PASSWORD: password }: z.infer<typeof shape>) {
  return password === undefined ? { servers, user: null, password: null } : { servers, user, password };
}
