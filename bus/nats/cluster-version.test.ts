import { expect, it } from 'vitest';
import { isTooOldForReplicas } from './cluster-version.ts';

it.each(['2.9.10', '2.9.25', '2.10.0', '2.10.13', '1.4.1'])('three brokers of nats-server %s may lose messages', (version) => {
  expect(isTooOldForReplicas(version)).toBe(true);
});

it.each(['2.10.14', '2.10.20', '2.11.0', '2.12.0-RC.1', '3.0.0', 'main', undefined])('three brokers of nats-server %s are not known to', (version) => {
  expect(isTooOldForReplicas(version)).toBe(false);
});
