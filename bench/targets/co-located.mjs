import { serveCluster } from './serve-cluster.mjs';
import { serveTarget } from './serve-target.mjs';

const NONE = 0;
const counts = { router: 1, agent: 1, 'router-gateway': NONE, 'router-worker': NONE, 'agent-gateway': NONE, 'actor-host': NONE, 'effect-worker': NONE };

/** @typedef {import('./serve-cluster.mjs').ClusterOptions} ClusterOptions */

/** The router as a gateway and a worker in one process, and the agent server as a gateway and a host in one. */
await serveTarget((/** @type {ClusterOptions} */ options) => serveCluster({ ...options, counts }));
