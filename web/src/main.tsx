import { render } from 'preact';

import { App } from './app';
import { startRouter } from './router';
import { loadSession } from './session';
import './theme.css';
import { startTheme } from './theme';

startTheme();
startRouter();
void loadSession();
const root = document.getElementById('app');
if (root !== null) render(<App />, root);
