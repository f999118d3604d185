#!/usr/bin/env node
import { requireNode } from './node-version.mjs';

requireNode();
const [command] = process.argv.slice(2);
// In a clone these two make the build, of which the others are a part.
if (command === 'start' || command === 'cluster') {
  process.argv.splice(2, 1);
  await (command === 'start' ? import('./start.mjs') : import('./cluster.mjs'));
} else await import('./operator.mjs');
