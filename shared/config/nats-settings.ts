interface NatsSettings {
  NATS_URL: string;
  NATS_PASSWORD?: string | undefined;
}

/** Connection settings of the broker: the user is named after the service; null without a password, which means no authentication. */
export function natsConfigOf<User extends string>(user: User, { NATS_URL: servers, NATS_PASSWORD: password }: NatsSettings) {
  return password === undefined ? { servers, user: null, password: null } : { servers, user, password };
}
