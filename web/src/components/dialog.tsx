/** Dialogs by the browser's own element: it keeps the focus inside and closes on Escape. */
import type { ComponentChildren, JSX } from 'preact';
import { useId, useLayoutEffect, useRef } from 'preact/hooks';

import { useAct } from '../api';
import { Button } from './button';
import { Icon } from './icon';
import { Problem } from './states';

export interface DialogProps {
  title: string;
  open: boolean;
  onClose: () => void;
  wide?: boolean;
  children: ComponentChildren;
}

export function Dialog(props: DialogProps): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => {
    const dialog = element.current;
    if (dialog === null || !props.open) return undefined;
    dialog.showModal();
    return () => dialog.close(); // it gives the focus back to where it was
  }, [props.open]);
  return (
    <dialog
      ref={element}
      class={`dialog${props.wide ? ' dialog-wide' : ''}`}
      aria-labelledby={id}
      onClose={() => {
        if (props.open && element.current?.open === false) props.onClose();
      }}
      onClick={(event) => {
        event.stopPropagation();
        if (event.target === element.current) props.onClose(); // beside the box
      }}
    >
      {props.open && (
        <div class="dialog-box">
          <header class="dialog-head">
            <h2 id={id}>{props.title}</h2>
            <button type="button" class="copy" aria-label="Close" onClick={props.onClose}>
              <Icon name="close" />
            </button>
          </header>
          <div class="dialog-body">{props.children}</div>
        </div>
      )}
    </dialog>
  );
}

/** The buttons at the foot of a dialog. */
export function DialogFoot(props: { children: ComponentChildren }): JSX.Element {
  return <footer class="dialog-foot">{props.children}</footer>;
}

/** Asks before something that cannot be taken back; a refusal is shown where it was asked. */
export function Confirm(props: {
  title: string;
  open: boolean;
  onClose: () => void;
  /** What the button says: the deed itself, not "OK". */
  action: string;
  kind?: 'danger' | 'primary';
  onConfirm: () => Promise<unknown>;
  children?: ComponentChildren;
}): JSX.Element {
  const { busy, error, run, clear } = useAct();
  const close = (): void => {
    clear();
    props.onClose();
  };
  const confirm = async (): Promise<void> => {
    if (await run(props.onConfirm)) props.onClose();
  };
  return (
    <Dialog title={props.title} open={props.open} onClose={close}>
      {props.children}
      {error && <Problem error={error} />}
      <DialogFoot>
        <Button onClick={close}>Cancel</Button>
        <Button kind={props.kind ?? 'danger'} busy={busy} onClick={() => void confirm()}>
          {props.action}
        </Button>
      </DialogFoot>
    </Dialog>
  );
}
