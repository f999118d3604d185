import { describe, expect, it } from 'vitest';
import { addresses } from '../bus/subjects.ts';
import { doors, dotEnv, ourServices, serviceOf } from './helpers/deployment.ts';
import { secretsFrom, settingsOf } from './helpers/kubernetes/read-folder.ts';
import { mayOpen, mayReach, peerName, policies } from './helpers/kubernetes/read-policies.ts';
import { settingsReaders } from './helpers/service-settings.ts';

describe('the network policies', () => {
  const services = [...ourServices, 'streams'];
  const brokerPort = 4222;

  it('allow nothing that is not named, to all pods', () => {
    const forAll = policies().filter(({ podSelector }) => podSelector.matchLabels === undefined);

    expect(forAll).toContainEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'], ingress: [], egress: [] });
    expect(forAll.flatMap(({ ingress }) => ingress)).toEqual([]);
    expect(forAll.flatMap(({ egress }) => egress).map(({ to, ports: opened }) => [to?.map(peerName), opened.map(({ port }) => port)])).toEqual([
      [['namespace kube-system'], [53, 53]],
    ]);
  });

  it('lead to the broker from the services that subjects.ts names as its users, and from no other', () => {
    const users = new Set(Object.values(addresses).flatMap(({ publish, read }): string[] => [...publish, ...read]));

    for (const name of services) {
      const isUser = users.has(name === 'streams' ? 'operator' : name);
      expect([name, mayOpen(name, 'nats'), mayReach(name, 'nats')]).toEqual([name, isUser ? [brokerPort] : [], isUser ? [brokerPort] : []]);
    }
    expect(mayReach(null, 'nats')).toEqual([]);
    expect([mayOpen('nats', 'nats'), mayReach('nats', 'nats')]).toEqual([[6222], [6222]]);
    expect([...String(settingsOf('actor-host', secretsFrom(dotEnv))['NATS_URL']).matchAll(/:(\d+)/g)].map(([, port]) => Number(port))).toEqual([
      brokerPort,
      brokerPort,
      brokerPort,
    ]);
  });

  it('open the doors of the gateways to all, and the management ports to the monitoring alone', () => {
    for (const name of ourServices) {
      const door = doors.find(({ gateway }) => gateway === name);
      const { management } = settingsReaders[name](settingsOf(name, secretsFrom(dotEnv)));

      expect([name, mayReach(null, name)]).toEqual([name, door === undefined ? [] : [door.port]]);
      expect(mayReach('namespace monitoring', name)).toEqual([management.port]);
    }
    expect(mayReach(null, 'streams')).toEqual([]);
  });

  it('lead to the stores from the services that have their addresses, and to a collector from each', () => {
    for (const name of ourServices) {
      const environment = settingsOf(name, secretsFrom(dotEnv));
      const stores = [...('DATABASE_URL' in environment ? [5432] : []), ...('REDIS_URL' in environment ? [6379] : [])];

      expect([name, mayOpen(name, null)]).toEqual([name, [...stores, 4317, 4318]]);
    }
  });

  it('lead to the internet, and to no private address, from the services that do so in the compose file', () => {
    const outbound = ourServices.filter((name) => serviceOf(name).networks.includes('outbound'));
    const blocks = policies().flatMap(({ egress }) => egress.flatMap(({ to = [] }) => to.flatMap((one) => ('ipBlock' in one ? [one.ipBlock] : []))));

    expect(ourServices.filter((name) => mayOpen(name, 'the internet').length > 0).sort()).toEqual([...outbound].sort());
    expect(outbound.length).toBeGreaterThan(1);
    for (const name of outbound) expect(mayOpen(name, 'the internet')).toEqual([80, 443]);
    for (const { cidr, except } of blocks) {
      const kept = cidr.includes(':') ? ['fc00::/7', 'fe80::/10', '::1/128'] : ['10.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'];
      expect(except).toEqual(expect.arrayContaining(kept));
    }
  });
});
