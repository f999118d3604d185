import { serveCluster } from './serve-cluster.mjs';
import { serveTarget } from './serve-target.mjs';

/** @typedef {import('./serve-cluster.mjs').ClusterOptions} ClusterOptions */

/** The settings that all rows once had: warnings only, and a broker that syncs every two minutes. */
await serveTarget((/** @type {ClusterOptions} */ options) => serveCluster({ ...options, logLevel: 'warn', isBrokerSynced: false }));
