/** A secret that is shown once: it is in this dialog and nowhere else. */
import type { JSX } from 'preact';

import { Button, Copy, Dialog, DialogFoot } from '../../components';

export function Secret(props: {
  title: string;
  about: string;
  label: string;
  text: string;
  onClose: () => void;
}): JSX.Element {
  return (
    <Dialog title={props.title} open onClose={props.onClose}>
      <p>{props.about}</p>
      <p class="secret">
        <code aria-label={props.label}>{props.text}</code>
        <Copy text={props.text} label={`Copy the ${props.label}`} word="Copy" />
      </p>
      <DialogFoot>
        <Button kind="primary" onClick={props.onClose}>
          I have kept it
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
