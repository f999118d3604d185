import { serveCluster } from './serve-cluster.mjs';
import { serveTarget } from './serve-target.mjs';

/** One key without a limit, and no traces. */
await serveTarget(serveCluster);
