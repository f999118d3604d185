import { z } from 'zod';
import { settings } from './settings.ts';

export const natsSettings = { NATS_URL: settings.NATS_URL, NATS_PASSWORD: settings.NATS_PASSWORD };

const shape = z.object(natsSettings);

/** Connection settings of the broker: the user is named after the service; null without a password, which means no authentication. */
export function natsConfigOf<User extends string>(user: User, { NATS_URL: servers, NATS_PASSWORD: password }: z.infer<typeof shape>) {
  return password === undefined ? { servers, user: null, password: null } : { servers, user, password };
}
