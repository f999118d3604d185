import type { NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort } from 'kubernetes-types/networking/v1.js';
import { busUsers } from '../../../bus/nats/permissions.ts';
import { addresses, type BusUser } from '../../../bus/subjects.ts';
import { doors, environmentOf, ourServices, serviceOf } from '../deployment.ts';
import { type ServiceName, settingsReaders } from '../service-settings.ts';
import { BROKER, brokerPorts, labelsOf, metadataOf } from './names.ts';

const POSTGRES_PORT = 5_432;
const REDIS_PORT = 6_379;
const OTLP_PORTS = [4_317, 4_318];
const WEB_PORTS = [80, 443];
/** Addresses that are not the internet's: what calls addresses of strangers must not reach the cluster or its nodes. */
const PRIVATE_V4 = ['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16'];
const PRIVATE_V6 = ['::1/128', 'fc00::/7', 'fe80::/10', '64:ff9b::/96'];

/** Nothing is allowed but what these name: from the users of `bus/subjects.ts`, the settings that each service has, and their ports. */
export function networkPolicies(): NetworkPolicy[] {
  return [nothing(), nameServer(), ...ourServices.map(policyOf), streamsJob(), broker()];
}

/** Users of the broker that publish or read anything. */
function usersOfBroker(): readonly BusUser[] {
  const used = Object.values(addresses).flatMap(({ publish, read }): BusUser[] => [...publish, ...read]);
  return busUsers.filter((user) => used.includes(user));
}

function nothing(): NetworkPolicy {
  return policy('default-deny', {}, { ingress: [], egress: [] });
}

function nameServer(): NetworkPolicy {
  const ports: NetworkPolicyPort[] = [
    { protocol: 'UDP', port: 53 },
    { protocol: 'TCP', port: 53 },
  ];
  return policy('name-server', {}, { egress: [{ to: [inNamespace('kube-system')], ports }] });
}

function policyOf(service: ServiceName): NetworkPolicy {
  const door = doors.find(({ gateway }) => gateway === service);
  const environment = environmentOf(service);
  const management = settingsReaders[service](environment).management.port;
  const ingress: NetworkPolicyIngressRule[] = [
    ...(door === undefined ? [] : [{ ports: tcp(door.port) }]),
    { from: [inNamespace('monitoring')], ports: tcp(management) },
  ];
  const egress: NetworkPolicyEgressRule[] = [
    ...(usersOfBroker().includes(service) ? [{ to: [pods(BROKER)], ports: tcp(brokerPorts.client) }] : []),
    ...('DATABASE_URL' in environment ? [{ ports: tcp(POSTGRES_PORT) }] : []),
    ...('REDIS_URL' in environment ? [{ ports: tcp(REDIS_PORT) }] : []),
    { ports: tcp(...OTLP_PORTS) },
    ...(serviceOf(service).networks.includes('outbound') ? [internet()] : []),
  ];
  return policy(service, labelsOf(service), { ingress, egress });
}

function streamsJob(): NetworkPolicy {
  return policy('streams', labelsOf('streams'), { egress: [{ to: [pods(BROKER)], ports: tcp(brokerPorts.client) }] });
}

/** Brokers need no password from each other, so only they reach the port of the cluster. The autoscaler reads the lag. */
function broker(): NetworkPolicy {
  const clients = usersOfBroker().map((user) => pods(user === 'operator' ? 'streams' : user));
  return policy(BROKER, labelsOf(BROKER), {
    ingress: [
      { from: clients, ports: tcp(brokerPorts.client) },
      { from: [pods(BROKER)], ports: tcp(brokerPorts.cluster) },
      { from: [inNamespace('keda')], ports: tcp(brokerPorts.monitor) },
    ],
    egress: [{ to: [pods(BROKER)], ports: tcp(brokerPorts.cluster) }],
  });
}

function internet(): NetworkPolicyEgressRule {
  return { to: [{ ipBlock: { cidr: '0.0.0.0/0', except: PRIVATE_V4 } }, { ipBlock: { cidr: '::/0', except: PRIVATE_V6 } }], ports: tcp(...WEB_PORTS) };
}

function policy(
  name: string,
  matchLabels: Record<string, string>,
  rules: { ingress?: NetworkPolicyIngressRule[]; egress?: NetworkPolicyEgressRule[] },
): NetworkPolicy {
  const { ingress, egress } = rules;
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadataOf(name),
    spec: {
      podSelector: Object.keys(matchLabels).length === 0 ? {} : { matchLabels },
      policyTypes: [...(ingress === undefined ? [] : ['Ingress']), ...(egress === undefined ? [] : ['Egress'])],
      ...(ingress === undefined || ingress.length === 0 ? {} : { ingress }),
      ...(egress === undefined || egress.length === 0 ? {} : { egress }),
    },
  };
}

function tcp(...ports: number[]): NetworkPolicyPort[] {
  return ports.map((port) => ({ protocol: 'TCP', port }));
}

function pods(name: string): NetworkPolicyPeer {
  return { podSelector: { matchLabels: labelsOf(name) } };
}

function inNamespace(name: string): NetworkPolicyPeer {
  return { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } } };
}
