interface NatsSettings {
  NATS_URL: string;
  NATS_PASSWORD?: string | undefined;
  NATS_REPLICAS: number;
}

/** Connection settings of the broker: the user is named after the service; null without a password, which means no authentication. */
export function natsConfigOf<User extends string>(user: User, { NATS_URL: servers, NATS_PASSWORD: password, NATS_REPLICAS: replicas }: NatsSettings) {
  return password === undefined ? { servers, user: null, password: null, replicas } : { servers, user, password, replicas };
}
